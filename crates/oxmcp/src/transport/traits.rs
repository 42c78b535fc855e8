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
    transport::{mirror::HeaderMirror, principal::Principal},
};

/// Connects to a peer and carries messages to it.
///
/// # Writing a transport
/// Implement the three traits with plain `async fn`s. A byte stream needs no implementation: any pair of
/// [`AsyncRead`](tokio::io::AsyncRead) and [`AsyncWrite`](tokio::io::AsyncWrite) is a transport through [`io()`](super::io()).
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
///         self.0.take().ok_or_else(|| oxmcp::Error::closed("the channels are already connected"))
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
    /// It is called once for each session. A transport that can connect only once fails the second time. One that can connect
    /// again (because it starts a process, or dials) lets a client retry after the peer has gone away, while the client
    /// connects or [later](crate::ClientSession::reconnect). A client keeps the transport for as long as the session.
    ///
    /// # Errors
    /// Any failure to connect, with a message that a user can act on.
    ///
    /// # Cancel safety
    /// Dropping the future undoes the attempt: no process or connection is left behind.
    fn connect(
        &mut self,
        limits: &Limits,
    ) -> impl Future<Output = Result<(Self::Read, Self::Write)>> + Send;

    /// Returns the name of the peer for errors and logs, for example the command that was started.
    fn name(&self) -> String {
        "the peer".into()
    }

    /// Returns a name that identifies this peer for as long as it stays the same program at the same address. A client uses it
    /// as the key for what it has learned about a server. `None`, the default, if there is no such name.
    ///
    /// It is kept in memory and never shown.
    fn identity(&self) -> Option<String> {
        None
    }

    /// Returns a diagnosis of the last connected peer, for the error when it does not respond. `None`, the default, if nothing
    /// is known.
    fn diagnosis(&self) -> Option<String> {
        None
    }

    /// Returns the startup of the last connected peer, if that takes time, as for a program. `None`, the default, if a peer is
    /// either available or not; then the client's timeout applies.
    fn startup(&self) -> Option<Startup> {
        None
    }

    /// Returns whether the last connected peer ended before it had read all messages. Then the messages are not the reason, and
    /// it would end again. `false`, the default, if that is not known.
    fn ended_unread(&self) -> bool {
        false
    }

    /// Returns the identity under which the transport talks to this peer, once connected: an opaque name that differs if the
    /// peer may respond differently. A client with a cache shares private responses between sessions with the same
    /// [`identity`](Self::identity) and the same authorization. `None`, the default, if it is not known; then such responses
    /// stay within their session.
    ///
    /// It is kept in memory and never shown. It need not be a secret: a digest will do.
    fn authorization(&self) -> Option<String> {
        None
    }

    /// Returns the login under which the transport talks, if it can change while the transport is connected. A client then
    /// shares cached responses by the login, and not by [`authorization`](Self::authorization). `None`, the default, if the
    /// login stays the same.
    fn current_login(&self) -> Option<CurrentLogin> {
        None
    }

    /// Returns whether each request gets its own response, as over HTTP. Then a peer that does not respond or cannot be reached
    /// has simply failed. `false`, the default, if messages are a stream: there, a peer that does not respond may be a legacy
    /// server that does not know the request, and a client tries another request.
    fn answers_each(&self) -> bool {
        false
    }

    /// Returns whether the process serves only this peer, and ends with it, as over stdio. Then a server [shuts
    /// down](crate::Extension::on_shutdown) when the peer is gone. `false`, the default, for all others.
    fn ends_process(&self) -> bool {
        false
    }

    /// Returns whether the transport is only for legacy revisions, like HTTP with SSE: a server speaks no modern revision
    /// (2026-07-28 and later) over it. `false`, the default, for all others.
    fn is_legacy(&self) -> bool {
        false
    }

    /// Returns the headers in which this transport repeats parts of requests, if it has headers, like HTTP. The client that
    /// connects tells the mirror which tool arguments the server wants mirrored, and omits tools with invalid declarations from
    /// lists. `None`, the default, for all other transports.
    fn mirror(&self) -> Option<HeaderMirror> {
        None
    }

    /// Returns whether incoming messages are read strictly, as with `Client::strict` and `Server::strict`. `false`, the
    /// default, for transports to other implementations.
    fn is_strict(&self) -> bool {
        false
    }

    /// Returns the waits of this transport for a person, for example for a login before it sends. During a wait no call times
    /// out, except by its total time. `None`, the default, if it never waits for a person.
    fn person_waits(&self) -> Option<UserWaits> {
        None
    }
}

/// Tracks waits for a person: a login, or a question. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct UserWaits(Arc<Mutex<Waits>>);

/// The state of the waits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waits {
    /// The number of current waits.
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

impl UserWaits {
    /// Creates the state without any wait.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a wait, which ends when the returned guard is dropped.
    #[must_use]
    pub fn begin(&self) -> UserWait {
        self.0.lock().begin();
        UserWait(self.clone())
    }

    pub(crate) fn waits(&self) -> Waits {
        *self.0.lock()
    }
}

/// The guard of a wait for a person, which ends when the guard is dropped.
#[derive(Debug)]
pub struct UserWait(UserWaits);

impl Drop for UserWait {
    fn drop(&mut self) {
        self.0.0.lock().end();
    }
}

/// The login under which a transport talks, which may change. Clones share it.
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

    /// Replaces the login. The name is as in [`Transport::authorization`]: with `None`, private responses stay within their
    /// session, and within this login.
    ///
    /// Call it before anything is sent under the new login.
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

/// The startup of a peer, until its first response: the time for which it may be silent, and its last sign of life.
#[derive(Clone)]
pub struct Startup {
    timeout: Duration,
    last_activity: Arc<dyn Fn() -> Instant + Send + Sync>,
}

impl Startup {
    /// Creates the startup of a peer that may be silent for `timeout`. `last_activity` returns the time of its last sign of life.
    #[must_use]
    pub fn new(
        timeout: Duration,
        last_activity: impl Fn() -> Instant + Send + Sync + 'static,
    ) -> Self {
        let last_activity = Arc::new(last_activity);
        Self {
            timeout,
            last_activity,
        }
    }

    /// Returns the time for which the peer may be silent.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Returns the time of the peer's last sign of life.
    #[must_use]
    pub fn last_activity(&self) -> Instant {
        (self.last_activity)()
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
/// One task uses both halves of a connection, and keeps reading while it writes. So one half of a transport may do work for the
/// other. Code that uses the halves of another transport must keep them in one task, too.
pub trait ReadHalf: Send + 'static {
    /// Waits for the next message. `None` means that the peer has closed its side.
    ///
    /// # Errors
    /// An error ends the connection, and the calls in flight fail with it.
    ///
    /// # Cancel safety
    /// Must be cancel safe: the future is dropped whenever there is other work, and no part of a message may be lost.
    fn read(&mut self) -> impl Future<Output = Result<Option<Frame<'_>>>> + Send;

    /// Returns the next message if it has already arrived, for example together with the last one. `None`, the default, if
    /// there is none or that is not known; then [`read`](Self::read) is called.
    fn try_read(&mut self) -> Option<Frame<'_>> {
        None
    }

    /// Returns whether everything that has arrived was read, as far as is known without polling the source. If so, pending
    /// messages are written at once; otherwise only when [`read`](Self::read) must wait. `false`, the default, is always
    /// correct, and costs one poll.
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

    /// Returns a counter of the bytes that the peer has accepted, which is updated while [`write`](Self::write) runs. At the
    /// end of a session, it distinguishes a slow reader from one that has stopped. `None`, the default, if the number is not
    /// known; then a message counts once it is written.
    fn bytes_written(&self) -> Option<Arc<AtomicU64>> {
        None
    }

    /// Closes the connection, so that the peer reads its end, and frees its resources. It must take a bounded time even if the
    /// peer does not cooperate. It is called once. But if [`can_reconnect`](Self::can_reconnect) returns `true`,
    /// [`reconnect`](Self::reconnect) may follow, and `close` may be called again after that, whether or not `reconnect`
    /// succeeded.
    ///
    /// # Errors
    /// A failure at the end, for example if a process had to be killed.
    fn close(&mut self) -> impl Future<Output = Result<()>> + Send;

    /// Returns whether [`reconnect`](Self::reconnect) can succeed. `false` by default.
    fn can_reconnect(&self) -> bool {
        false
    }

    /// Connects again after the peer has ended and [`close`](Self::close) was called, for example by starting a process again.
    /// From then on both halves belong to the new connection, and unread messages of the old one are gone. It is called only if
    /// the peer holds no state of the session, as in 2026-07-28 and later.
    ///
    /// # Errors
    /// Any failure to connect. It may be called again.
    fn reconnect(&mut self) -> impl Future<Output = Result<()>> + Send {
        async { Err(Error::closed("this transport cannot reconnect")) }
    }
}

/// A frame that a transport has read.
#[non_exhaustive]
pub enum Frame<'a> {
    /// One message: a single JSON value, possibly surrounded by white space.
    Message(&'a [u8]),
    /// A message with its own sender, for transports that know the sender of each message and not only of the connection. It is
    /// the [`Principal`] of the request in the message, as over HTTP with SSE, where each message arrives by an HTTP request
    /// with its own token.
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
    /// A request of this side that will get no response, if the transport knows that and the connection continues. This is for
    /// transports that send each request separately, as over HTTP.
    Failed {
        /// The ID of the request.
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

    /// The same frame with another message.
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

/// Messages to write: at least one. Iterate to get one message at a time, without its newline.
#[derive(Clone, Copy)]
pub struct Messages<'a>(&'a [u8]);

impl<'a> Messages<'a> {
    /// Creates messages from `lines`: whole messages, each ended by a newline and with no other newline in it.
    pub(crate) fn new(lines: &'a [u8]) -> Self {
        Self(lines)
    }

    /// Creates messages for a transport that wraps another one and changes messages. Each message is a line that ends with a
    /// newline.
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

    /// Returns all messages in line framing: each ends with a newline, and contains no other.
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
