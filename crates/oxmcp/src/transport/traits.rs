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
/// # Writing a transport
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
    /// The half that reads messages.
    type Read: ReadHalf;
    /// The half that writes messages.
    type Write: WriteHalf;

    /// Connects to the peer.
    ///
    /// It is called once for each session. A transport that can connect only once fails the second time; one that can
    /// connect again (that starts a process, or dials) lets a client try again after the peer has gone away, while the
    /// client connects or [later](crate::ClientSession::reconnect): a client keeps the transport for as long as the
    /// session.
    ///
    /// # Errors
    /// Any failure to connect, in words that a user can act on.
    ///
    /// # Cancel safety
    /// When the future is dropped, the attempt is undone: no process or connection stays behind.
    fn connect(
        &mut self,
        limits: &Limits,
    ) -> impl Future<Output = Result<(Self::Read, Self::Write)>> + Send;

    /// The name of the peer in errors and logs, for example the command that was started.
    fn name(&self) -> String {
        "the peer".into()
    }

    /// A name that distinguishes this peer from others, for as long as it stays the same program at the same place. A
    /// client stores by this name what it has learned about a server, and need not learn it again. `None`, the default, if
    /// there is no such name.
    ///
    /// It is kept in memory and never shown.
    fn identity(&self) -> Option<String> {
        None
    }

    /// A diagnosis of the peer that was connected last, for the error when it does not respond. `None`, the default, if
    /// nothing is known.
    fn diagnosis(&self) -> Option<String> {
        None
    }

    /// The start of the peer that was connected last, if it takes time, as the start of a program does. `None`, the
    /// default, if a peer is either available or not; then the client's timeout applies.
    fn startup(&self) -> Option<Startup> {
        None
    }

    /// Whether the peer that was connected last has ended without having read all messages that it was sent: then the
    /// messages are not the reason, and it would end again. `false`, the default, if that is not known.
    fn ended_unread(&self) -> bool {
        false
    }

    /// The identity on whose behalf the transport talks to this peer, once it is connected: an opaque name that differs if
    /// the peer may respond differently. A client with a cache shares private responses between sessions with the same
    /// [`identity`](Self::identity) and the same authorization. `None`, the default, if it is not known; then such
    /// responses stay within their session.
    ///
    /// It is kept in memory and never shown. It need not be a secret: a digest will do.
    fn authorization(&self) -> Option<String> {
        None
    }

    /// The login on whose behalf the transport talks, if it can change while the transport is connected. A client then
    /// decides by the login, and not by [`authorization`](Self::authorization), which requesters may receive a cached
    /// response. `None`, the default, if the login stays the same.
    fn current_login(&self) -> Option<CurrentLogin> {
        None
    }

    /// Whether each request gets a response of its own, as over HTTP. Then a peer that does not respond or cannot be
    /// reached has failed, and nothing else follows from it. `false`, the default, if messages are a stream: there, a peer
    /// that does not respond may be an old server that does not know the request, and a client tries another request.
    fn answers_each(&self) -> bool {
        false
    }

    /// Whether the process serves this peer alone, and ends with it, as over standard input and output: then a server
    /// [shuts down](crate::Extension::on_shutdown) when the peer is gone. `false`, the default, for all others.
    fn ends_process(&self) -> bool {
        false
    }

    /// Whether the transport belongs to earlier revisions alone, like HTTP with SSE: then a server speaks no modern
    /// revision (2026-07-28 and later) over it. `false`, the default, for all others.
    fn is_legacy(&self) -> bool {
        false
    }

    /// The headers in which this transport repeats parts of requests, if it has headers, as HTTP has. The client that
    /// connects tells the mirror which arguments the server's tools want repeated, and leaves tools out of lists if their
    /// declarations are invalid. `None`, the default, for all other transports.
    fn mirror(&self) -> Option<Mirror> {
        None
    }

    /// Whether what arrives is read to the letter of the specification only, as with `Client::strict` and `Server::strict`. `false`,
    /// the default, for transports to peers that others have written.
    fn is_strict(&self) -> bool {
        false
    }

    /// The waits of this transport for a person, as of one that logs in before it sends. During a wait no call times out,
    /// except by its total time. `None`, the default, if it never waits for a person.
    fn person_waits(&self) -> Option<PersonWaits> {
        None
    }
}

/// The waits for a person: a login, or a question. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct PersonWaits(Arc<Mutex<Waits>>);

/// The state of the waits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waits {
    /// The number of waits that are going on.
    pub(crate) waiting: usize,
    /// The time at which the last wait ended.
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
    /// Creates the state without any wait.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a wait, which ends when the returned guard is dropped.
    #[must_use]
    pub fn begin(&self) -> PersonWait {
        self.0.lock().begin();
        PersonWait(self.clone())
    }

    pub(crate) fn waits(&self) -> Waits {
        *self.0.lock()
    }
}

/// The guard of a wait for a person, which ends when the guard is dropped.
#[derive(Debug)]
pub struct PersonWait(PersonWaits);

impl Drop for PersonWait {
    fn drop(&mut self) {
        self.0.0.lock().end();
    }
}

/// The login on whose behalf a transport talks, which may change. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct CurrentLogin(Arc<Mutex<NumberedLogin>>);

/// A login, and the number of logins before it.
#[derive(Clone, Debug, Default)]
pub(crate) struct NumberedLogin {
    pub(crate) number: u64,
    pub(crate) name: Option<Arc<str>>,
}

impl CurrentLogin {
    /// Creates the state before the first login.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces the login by another one. The name is as in [`Transport::authorization`]: with `None`, private responses
    /// stay within their session, and within this login.
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

/// The start of a peer, before its first response: the time for which it may be silent, and its last sign of life.
#[derive(Clone)]
pub struct Startup {
    timeout: Duration,
    last_sign: Arc<dyn Fn() -> Instant + Send + Sync>,
}

impl Startup {
    /// Creates the start of a peer that may be silent for `timeout`. `last_sign` returns the time of its last sign of life.
    #[must_use]
    pub fn new(timeout: Duration, last_sign: impl Fn() -> Instant + Send + Sync + 'static) -> Self {
        let last_sign = Arc::new(last_sign);
        Self { timeout, last_sign }
    }

    /// The time for which the peer may be silent.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The time of the last sign of life of the peer.
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

/// The half of a connection that reads messages.
///
/// Both halves of a connection are used by one task, which goes on reading while it writes. A transport may therefore let
/// one half do work of the other; code that uses the halves of another transport must keep them in one task, too.
pub trait ReadHalf: Send + 'static {
    /// Waits for the next message. `None` means that the peer has closed its side.
    ///
    /// # Errors
    /// An error ends the connection, and the calls in flight fail with it.
    ///
    /// # Cancel safety
    /// Must be cancel safe: the future is dropped whenever there is something else to do, and no part of a message
    /// may be lost with it.
    fn read(&mut self) -> impl Future<Output = Result<Option<Frame<'_>>>> + Send;

    /// The next message, if it has arrived already, for example together with the last one: then there is no need to wait.
    /// `None`, the default, if there is none or that is not known; then [`read`](Self::read) is called.
    fn try_read(&mut self) -> Option<Frame<'_>> {
        None
    }

    /// Whether all that has arrived has been read, as far as is known without polling the source. If so, pending messages
    /// are written at once; otherwise only when [`read`](Self::read) has to wait. `false`, the default, if that is not
    /// known: it is never wrong, and costs one poll.
    fn is_drained(&self) -> bool {
        false
    }
}

/// The half of a connection that writes messages. It is used by the same task as the [`ReadHalf`].
pub trait WriteHalf: Send + 'static {
    /// Writes all of `messages`, in order, and flushes.
    ///
    /// # Errors
    /// An error ends the connection.
    ///
    /// # Cancel safety
    /// Need not be cancel safe: the future is dropped only if the connection ends with it.
    fn write(&mut self, messages: Messages<'_>) -> impl Future<Output = Result<()>> + Send;

    /// A counter of the bytes that the peer has taken, which is updated while [`write`](Self::write) runs: when a session
    /// ends, it distinguishes a peer that reads slowly from one that reads no more. `None`, the default, if the number is
    /// not known; then a message counts when it was written.
    fn bytes_written(&self) -> Option<Arc<AtomicU64>> {
        None
    }

    /// Closes the connection, so that the peer reads its end, and frees its resources. It takes a bounded time even if the
    /// peer does not cooperate. It is called once; but if [`can_reconnect`](Self::can_reconnect) returns `true`,
    /// [`reconnect`](Self::reconnect) may follow, and `close` may be called again after that, whether or not `reconnect`
    /// succeeded.
    ///
    /// # Errors
    /// The failure in the end, for example that a process had to be killed.
    fn close(&mut self) -> impl Future<Output = Result<()>> + Send;

    /// Whether [`reconnect`](Self::reconnect) can succeed. `false`, the default, if a connection that has ended cannot be
    /// made again.
    fn can_reconnect(&self) -> bool {
        false
    }

    /// Connects anew after the peer has ended and [`close`](Self::close) was called, as a transport that starts a process
    /// can: from then on both halves are those of the new connection, and unread messages of the old one are gone. It is
    /// called only if the peer holds no state of the session, as in 2026-07-28 and later.
    ///
    /// # Errors
    /// Any failure to connect. It may be called again.
    fn reconnect(&mut self) -> impl Future<Output = Result<()>> + Send {
        async { Err(Error::closed("the connection cannot be made again")) }
    }
}

/// A frame that a transport has read.
#[non_exhaustive]
pub enum Frame<'a> {
    /// One message: a single JSON value, with white space around it at most.
    Message(&'a [u8]),
    /// A message whose sender the transport knows for the message itself, and not only for the connection: the sender is
    /// the [`Principal`] of the request in the message, as over HTTP with SSE, where each message arrives by an HTTP
    /// request with a token of its own.
    MessageFrom {
        /// As in [`Message`](Self::Message).
        message: &'a [u8],
        /// The sender of the message.
        sender: &'a Principal,
    },
    /// A message longer than [`Limits::max_message_bytes`], which was skipped.
    TooLong {
        /// The beginning of the message, as far as it is known: a few hundred bytes usually show which request it answers.
        beginning: &'a [u8],
    },
    /// A request of this side that got no response and will get none, if the transport knows that and the connection goes
    /// on: each request may be sent on its own, as over HTTP.
    Failed {
        /// The id of the request.
        id: RequestId,
        /// The error with which the call fails.
        error: Error,
    },
}

impl<'a> Frame<'a> {
    /// The message, if the frame is one, and its sender, if the transport knows it for each message.
    pub(crate) fn message(&self) -> Option<(&'a [u8], Option<&'a Principal>)> {
        match self {
            Self::Message(message) => Some((message, None)),
            Self::MessageFrom { message, sender } => Some((message, Some(sender))),
            Self::TooLong { .. } | Self::Failed { .. } => None,
        }
    }

    /// The same frame, with another message in place of its own.
    pub(crate) fn with_message(self, message: &'a [u8]) -> Self {
        match self {
            Self::Message(_) => Self::Message(message),
            Self::MessageFrom { sender, .. } => Self::MessageFrom { message, sender },
            other => other,
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
    /// Creates messages from `lines`: whole messages, each ended by a newline and with no other newline in it.
    pub(crate) fn new(lines: &'a [u8]) -> Self {
        Self(lines)
    }

    /// Creates messages to write through another transport, as a transport needs that wraps another one and changes
    /// messages. Each message is a line that ends with a newline.
    ///
    /// # Errors
    /// If `lines` is empty or its last line has no newline.
    pub fn from_lines(lines: &'a [u8]) -> Result<Self> {
        if lines.last() == Some(&b'\n') {
            Ok(Self(lines))
        } else {
            Err(Error::misuse("each message must end with a newline"))
        }
    }

    /// All messages as they are written to a line-framed stream: each ended by a newline, with no other newline in it.
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
