//! A pair of transports that are connected in memory.

use tokio::io::DuplexStream;

use crate::{
    error::Result,
    limits::Limits,
    transport::{
        io::{Io, LineReader, LineWriter, io},
        traits::Transport,
    },
};

/// The bytes that may be in flight in each direction: the capacity of a pipe on Linux.
const CAPACITY: usize = 64 << 10;

/// Creates two transports that are connected to each other: each reads the messages that the other writes. This is for tests,
/// and for a client and a server in one process.
///
/// The messages are the same lines as over [`stdio`](super::stdio()), so that code that works here works there. A writer waits
/// while 64 KiB are unread. When one side closes or is dropped, the other reads the end.
///
/// ```
/// use oxmcp::{Limits, in_memory, transport::{Frame, Messages, ReadHalf, Transport, WriteHalf}};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> oxmcp::Result<()> {
/// let (mut client, mut server) = in_memory();
/// let (_, mut ours) = client.connect(&Limits::default()).await?;
/// let (mut theirs, _) = server.connect(&Limits::default()).await?;
///
/// ours.write(Messages::from_lines(b"{}\n")?).await?;
/// assert!(matches!(theirs.read().await?, Some(Frame::Message(b"{}"))));
///
/// ours.close().await?;
/// assert!(theirs.read().await?.is_none());
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn in_memory() -> (InMemory, InMemory) {
    // One pair for each direction, so that the other side notices at once when either half is dropped.
    let (to_server, from_client) = tokio::io::duplex(CAPACITY);
    let (to_client, from_server) = tokio::io::duplex(CAPACITY);
    let side = |from, to| InMemory {
        io: io(from, to),
        is_strict: false,
    };
    (side(from_server, to_server), side(from_client, to_client))
}

/// One side of a pair of transports; created by [`in_memory`]. It connects once.
#[derive(Debug)]
pub struct InMemory {
    io: Io<DuplexStream, DuplexStream>,
    is_strict: bool,
}

impl InMemory {
    /// Reads strictly: rejects whatever violates the specification.
    #[cfg(all(feature = "client", feature = "server"))]
    pub(crate) fn strict(self) -> Self {
        Self {
            is_strict: true,
            ..self
        }
    }
}

impl Transport for InMemory {
    type Read = LineReader<DuplexStream>;
    type Write = LineWriter<DuplexStream>;

    async fn connect(&mut self, limits: &Limits) -> Result<(Self::Read, Self::Write)> {
        self.io.connect(limits).await
    }

    fn name(&self) -> String {
        "the in-process peer".into()
    }

    fn is_strict(&self) -> bool {
        self.is_strict
    }
}
