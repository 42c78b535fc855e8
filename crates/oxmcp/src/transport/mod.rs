//! Transports: how JSON-RPC messages travel between two peers.
//!
//! A [`Transport`] connects and returns two halves, one that reads messages and one that writes them. It knows nothing of
//! calls, cancellation, timeouts and sessions, which belong to the layer above.
//!
//! | transport | for |
//! |---|---|
//! | [`stdio()`] | a server that a client starts: its standard input and output |
//! | [`Command`] | a client that starts its server as a process, with the feature `client` |
//! | [`in_memory`] | tests, and peers that live in one process |
//! | [`io()`], [`stream`] | any byte stream: Unix sockets, TCP |
//! | `http::Endpoint` | a URL, with the feature `http-client` |
//! | [`Logging`] | any other transport, with one log line per message |
//! | [`boxed()`] | any other transport, chosen at run time |
//!
//! You can write your own: see [`Transport`], and the specification's page on
//! [custom transports](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports#custom-transports).

mod boxed;
#[cfg(feature = "client")]
mod command;
pub(crate) mod io;
mod logging;
mod memory;
#[cfg_attr(
    not(feature = "client"),
    expect(dead_code, reason = "only clients learn which arguments to mirror")
)]
pub(crate) mod mirror;
pub(crate) mod principal;
mod stdio;
pub(crate) mod traits;

pub use boxed::{BoxReadHalf, BoxTransport, BoxWriteHalf, boxed};
#[cfg(feature = "client")]
pub use command::{Command, Stderr};
pub use io::{Io, io, stream};
pub use logging::Logging;
pub use memory::{InMemory, in_memory};
pub use mirror::HeaderMirror;
pub use stdio::{Stdio, stdio};
pub use traits::{
    CurrentLogin, Frame, Messages, MessagesIter, ReadHalf, Startup, Transport, UserWait, UserWaits,
    WriteHalf,
};

// The halves of the transports above, for types that name them.
#[cfg(feature = "client")]
#[doc(hidden)]
pub use command::{CommandReader, CommandWriter};
#[doc(hidden)]
pub use io::{LineReader, LineWriter};
#[doc(hidden)]
pub use logging::{LoggingReader, LoggingWriter};
#[doc(hidden)]
pub use stdio::{StdioReader, StdioWriter};
