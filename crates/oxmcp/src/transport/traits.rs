//! The traits of a transport, and the messages that it reads and writes.

use std::{
    fmt,
    future::Future,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use memchr::memchr;
use oxmcp_protocol::RequestId;
use tokio::time::Instant;

use crate::{
    error::{Error, Result},
    limits::Limits,
    sync::Mutex,
    transport::{mirror::Mirror, principal::Principal},
};

/// A way to reach a peer.
///
/// # Writing one
/// Implement the three traits with plain `async fn`s. A transport over a byte stream needs none of this: any pair of
/// [`AsyncRead`](tokio::io::AsyncRead) and [`AsyncWrite`](tokio::io::AsyncWrite) is a transport through
/// [`io()`](super::io()).
///
/// ```
/// use oxmcp::{Limits, Result, transport::{Frame, Messages, ReadHalf, Transport, WriteHalf}};
/// use tokio::sync::mpsc;
///
/// /// Messages over a pair of channels.
/// struct Channels(Option<(Inbox, Outbox)>);
/// struct Inbox { channel: mpsc::Receiver<Vec<u8>>, current: Vec<u8> }
/// struct Outbox(mpsc::Sender<Vec<u8>>);
///
/// impl Transport for Channels {
///     type Read = Inbox;
///     type Write = Outbox;
///
///     async fn connect(&mut self, _limits: &Limits) -> Result<(Inbox, Outbox)> {
///         self.0.take().ok_or_else(|| oxmcp::Error::closed("these channels were used before"))
///     }
/// }
///
/// impl ReadHalf for Inbox {
///     async fn read(&mut self) -> Result<Option<Frame<'_>>> {
///         let Some(message) = self.channel.recv().await else { return Ok(None) };
///         self.current = message;
///         Ok(Some(Frame::Message(&self.current)))
///     }
/// }
///
/// impl WriteHalf for Outbox {
///     async fn write(&mut self, messages: Messages<'_>) -> Result<()> {
///         for message in messages {
///             self.0.send(message.to_vec()).await.map_err(|_| oxmcp::Error::closed("the peer is gone"))?;
///         }
///         Ok(())
///     }
///
///     async fn close(&mut self) -> Result<()> {
///         Ok(())
///     }
/// }
/// ```
pub trait Transport: Send + 'static {
    /// The half that messages come from.
    type Read: ReadHalf;
    /// The half that messages go to.
    type Write: WriteHalf;

    /// Connects to the peer.
    ///
    /// It is called once for each session. A transport that can connect only once fails the second time; one that can
    /// do it again (that starts a process, or dials) lets a client try again after a peer that went away, be it while it connects or
    /// [later](crate::ClientSession::reconnect): a client keeps the transport for as long as the session.
    ///
    /// # Errors
    /// Whatever keeps it from connecting, in words that a user can act on.
    ///
    /// # Cancel safety
    /// When the future is dropped, what was begun is undone: no process or connection stays behind.
    fn connect(
        &mut self,
        limits: &Limits,
    ) -> impl Future<Output = Result<(Self::Read, Self::Write)>> + Send;

    /// The name of the peer in errors and logs, for example the command that was started.
    fn name(&self) -> String {
        "the peer".into()
    }

    /// A name that tells this peer from others, for as long as it stays the same program at the same place: a client keeps by
    /// it what it found out about a server, and need not find it out again. `None`, the default, where nothing does.
    ///
    /// It is kept in memory and never shown.
    fn identity(&self) -> Option<String> {
        None
    }

    /// What is known of the peer that was connected last, for an error that says why it does not answer. `None`, the default,
    /// where nothing is.
    fn diagnosis(&self) -> Option<String> {
        None
    }

    /// The start of the peer that was connected last, where that takes its time, as that of a program does. `None`, the default,
    /// where a peer is there or not; then the client's time-out counts.
    fn startup(&self) -> Option<Startup> {
        None
    }

    /// Whether the peer that was connected last has ended without having read all that it was sent: then that is not why it
    /// ended, and it would end again. `false`, the default, where it is not known.
    fn ended_unread(&self) -> bool {
        false
    }

    /// The identity on whose behalf it talks to this peer, once it is connected: an opaque name that differs where the peer may
    /// answer differently. A client that keeps answers which are private shares them between sessions with the same
    /// [`identity`](Self::identity) and the same authorization. `None`, the default, where it is not known; then such
    /// answers stay within their session.
    ///
    /// It is kept in memory and never shown. It need not be a secret: a digest will do.
    fn authorization(&self) -> Option<String> {
        None
    }

    /// The login on whose behalf it talks, where that can change while it is connected. Then a client tells by it, and not by
    /// [`authorization`](Self::authorization), who may have an answer that it keeps. `None`, the default, where it stays the same.
    fn current_login(&self) -> Option<CurrentLogin> {
        None
    }

    /// Whether each request is answered by itself, as over HTTP. Then a peer that stays silent or cannot be reached has
    /// failed, and that is all it says. `false`, the default, where messages are a stream: there it may be an old server
    /// that does not know the question, and a client asks it in another way.
    fn answers_each(&self) -> bool {
        false
    }

    /// Whether the process serves this peer alone, and ends with it, as over standard input and output: then a server
    /// [shuts down](crate::Extension::on_shutdown) when the peer is gone. `false`, the default, for all others.
    fn ends_process(&self) -> bool {
        false
    }

    /// Whether it is a transport of earlier revisions alone, like HTTP with SSE: then a server speaks no modern revision (2026-07-28 and
    /// later) over it. `false`, the default, for all others.
    fn is_legacy(&self) -> bool {
        false
    }

    /// The headers in which this transport repeats parts of requests, where it has headers, as HTTP has.
    /// The client that connects tells it what the server's tools want repeated, and leaves tools out of lists whose
    /// wishes cannot be met. `None`, the default, for all other transports.
    fn mirror(&self) -> Option<Mirror> {
        None
    }

    /// What this transport waits for a person with, as one does that logs in before it sends. Meanwhile no call times out, but
    /// for its total. `None`, the default, where it never waits for anybody.
    fn person_waits(&self) -> Option<PersonWaits> {
        None
    }
}

/// The times at which a person is waited for: a login, or a question. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct PersonWaits(Arc<Mutex<Waits>>);

/// What is known of the waits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waits {
    /// How many are going on.
    pub(crate) waiting: usize,
    /// When the last one ended.
    pub(crate) ended: Option<Instant>,
}

impl Waits {
    pub(crate) fn begin(&mut self) {
        self.waiting += 1;
    }

    pub(crate) fn end(&mut self) {
        self.waiting -= 1;
        self.ended = Some(Instant::now());
    }
}

impl PersonWaits {
    /// No wait so far.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a wait, which ends when what is returned is dropped.
    #[must_use]
    pub fn begin(&self) -> PersonWait {
        self.0.lock().begin();
        PersonWait(self.clone())
    }

    pub(crate) fn waits(&self) -> Waits {
        *self.0.lock()
    }
}

/// A wait for a person, for as long as it lives.
#[derive(Debug)]
pub struct PersonWait(PersonWaits);

impl Drop for PersonWait {
    fn drop(&mut self) {
        self.0.0.lock().end();
    }
}

/// The login on whose behalf a transport talks, which may be another one later. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct CurrentLogin(Arc<Mutex<NumberedLogin>>);

/// A login, and how many there were before it.
#[derive(Clone, Debug, Default)]
pub(crate) struct NumberedLogin {
    pub(crate) number: u64,
    pub(crate) name: Option<Arc<str>>,
}

impl CurrentLogin {
    /// Nobody is logged in so far.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Another login takes the place of the one before. Its name is as that of [`Transport::authorization`]: with `None` answers
    /// that are private stay within their session, and within this login.
    ///
    /// Set it before anything is sent on behalf of the new login.
    pub fn set(&self, name: Option<String>) {
        let mut login = self.0.lock();
        login.number += 1;
        login.name = name.map(Into::into);
    }

    #[cfg(feature = "client")]
    pub(crate) fn get(&self) -> NumberedLogin {
        self.0.lock().clone()
    }
}

/// The start of a peer, before it has answered for the first time: how long it may be silent, and when it last gave a sign of life.
#[derive(Clone)]
pub struct Startup {
    timeout: Duration,
    last_sign: Arc<dyn Fn() -> Instant + Send + Sync>,
}

impl Startup {
    /// A peer that may be silent for so long, `last_sign` being asked for the last moment at which it was not.
    #[must_use]
    pub fn new(timeout: Duration, last_sign: impl Fn() -> Instant + Send + Sync + 'static) -> Self {
        let last_sign = Arc::new(last_sign);
        Self { timeout, last_sign }
    }

    /// How long it may be silent.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// When it last gave a sign of life.
    #[must_use]
    pub fn last_sign(&self) -> Instant {
        (self.last_sign)()
    }
}

impl fmt::Debug for Startup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Startup")
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// The half of a connection that messages come from.
///
/// Both halves of a connection are used by one task, which goes on reading while it writes. So a transport may let one half
/// do work of the other; code that uses the halves of another transport must keep them in one task, too.
pub trait ReadHalf: Send + 'static {
    /// Waits for the next message. `None` means that the peer has closed its side.
    ///
    /// # Errors
    /// An error ends the connection, and is what the calls in flight fail with.
    ///
    /// # Cancel safety
    /// Must be cancel safe: the future is dropped whenever there is something else to do, and no part of a message
    /// may be lost with it.
    fn read(&mut self) -> impl Future<Output = Result<Option<Frame<'_>>>> + Send;

    /// The next message, where it is here already, as one is that came together with the last: then there is no need to
    /// wait. `None`, the default, where there is none or it is not known; then [`read`](Self::read) is asked.
    fn try_read(&mut self) -> Option<Frame<'_>> {
        None
    }

    /// Whether all that has arrived has been read, as far as is known without a look at its source. Then what
    /// there is to write is written at once; else only when [`read`](Self::read) has to wait. `false`, the default,
    /// where it is not known: that is never wrong, and costs a look.
    fn is_drained(&self) -> bool {
        false
    }
}

/// The half of a connection that messages go to. It is used by the same task as the [`ReadHalf`].
pub trait WriteHalf: Send + 'static {
    /// Writes all of `messages`, in order, and flushes.
    ///
    /// # Errors
    /// An error ends the connection.
    ///
    /// # Cancel safety
    /// Need not be cancel safe: the future is dropped only where the connection ends with it.
    fn write(&mut self, messages: Messages<'_>) -> impl Future<Output = Result<()>> + Send;

    /// A count of the bytes that the peer has taken, which goes on while [`write`](Self::write) does: by it a peer that reads
    /// slowly is told from one that reads no more, when a session ends. `None`, the default, where it is not known; then a
    /// message counts when it was written.
    fn bytes_written(&self) -> Option<Arc<AtomicU64>> {
        None
    }

    /// Closes the connection, so that the peer reads its end, and frees what it holds. It takes a bounded time even
    /// where the peer does not play along. It is called once; but where [`can_reconnect`](Self::can_reconnect) says so,
    /// [`reconnect`](Self::reconnect) may follow it, and it may be called again after that, whether or not that succeeded.
    ///
    /// # Errors
    /// What went wrong in the end, for example that a process had to be killed.
    fn close(&mut self) -> impl Future<Output = Result<()>> + Send;

    /// Whether [`reconnect`](Self::reconnect) can succeed. `false`, the default, where a connection that has ended is over.
    fn can_reconnect(&self) -> bool {
        false
    }

    /// Connects anew after the peer has ended and [`close`](Self::close) was called, as a transport can that starts a process: from now on both halves are those of
    /// the new connection, and what the old one had left is gone. It is called only where no state of the session was on the
    /// peer's side, as in 2026-07-28 and later.
    ///
    /// # Errors
    /// Whatever keeps it from connecting. It may be called again.
    fn reconnect(&mut self) -> impl Future<Output = Result<()>> + Send {
        async { Err(Error::closed("the connection cannot be made again")) }
    }
}

/// What a transport read.
#[non_exhaustive]
pub enum Frame<'a> {
    /// One message: a single JSON value, with white space around it at most.
    Message(&'a [u8]),
    /// A message whose sender the transport knows better than by the connection: it is the [`Principal`] of what the message
    /// asks for, as over HTTP with SSE, where each comes by a request with a token of its own.
    MessageFrom {
        /// As in [`Message`](Self::Message).
        message: &'a [u8],
        /// The one that has sent it.
        sender: &'a Principal,
    },
    /// A message longer than [`Limits::max_message_bytes`], which was skipped.
    TooLong {
        /// How it begins, as far as that is known: a few hundred bytes mostly say which request it answers.
        beginning: &'a [u8],
    },
    /// A request of this side that got no answer and will get none, where the transport knows that and the connection
    /// goes on: each request may travel on its own, as over HTTP.
    Failed {
        /// The id of the request.
        id: RequestId,
        /// What its caller is told.
        error: Error,
    },
}

impl<'a> Frame<'a> {
    /// The message, if it is one, and its sender where the transport knows that of each.
    pub(crate) fn message(&self) -> Option<(&'a [u8], Option<&'a Principal>)> {
        match self {
            Self::Message(message) => Some((message, None)),
            Self::MessageFrom { message, sender } => Some((message, Some(sender))),
            Self::TooLong { .. } | Self::Failed { .. } => None,
        }
    }
}

impl fmt::Debug for Frame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(message) | Self::MessageFrom { message, .. } => {
                f.debug_tuple("Message").field(&message.len()).finish()
            }
            Self::TooLong { .. } => f.write_str("TooLong"),
            Self::Failed { id, error } => f
                .debug_struct("Failed")
                .field("id", id)
                .field("error", error)
                .finish(),
        }
    }
}

/// Messages to be written: at least one. Iterate for one message at a time, without its newline.
#[derive(Clone, Copy)]
pub struct Messages<'a>(&'a [u8]);

impl<'a> Messages<'a> {
    /// `lines` holds whole messages, each ended by a newline and with no other newline in it.
    pub(crate) fn new(lines: &'a [u8]) -> Self {
        Self(lines)
    }

    /// Messages to write through another transport: what a transport that wraps another one and changes messages
    /// needs. Each message is a line that ends with a newline.
    ///
    /// # Errors
    /// When `lines` is empty or its last line has no newline.
    pub fn from_lines(lines: &'a [u8]) -> Result<Self> {
        if lines.last() == Some(&b'\n') {
            Ok(Self(lines))
        } else {
            Err(Error::misuse("each message must end with a newline"))
        }
    }

    /// All messages as they go onto a line-framed stream: each ended by a newline, with no other newline in it.
    #[must_use]
    pub fn as_lines(&self) -> &'a [u8] {
        self.0
    }
}

impl<'a> IntoIterator for Messages<'a> {
    type Item = &'a [u8];
    type IntoIter = MessagesIter<'a>;

    fn into_iter(self) -> MessagesIter<'a> {
        MessagesIter(Some(self.0.strip_suffix(b"\n").unwrap_or(self.0)))
    }
}

impl fmt::Debug for Messages<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Messages").field(&self.0.len()).finish()
    }
}

/// The messages of a [`Messages`], one at a time.
#[derive(Clone, Debug)]
pub struct MessagesIter<'a>(Option<&'a [u8]>);

impl<'a> Iterator for MessagesIter<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.0.take()?;
        let Some(end) = memchr(b'\n', rest) else {
            return Some(rest);
        };
        let (message, rest) = rest.split_at(end);
        self.0 = rest.get(1..);
        Some(message)
    }
}
