//! The transport of one session: an inbox for posted messages, and an event stream to the client.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_core::{Stream, stream::BoxStream};
use futures_util::stream;
use http::Response;
use oxmcp_protocol::framing::sse::{OutgoingEvent, write_comment};
use tokio::{
    select,
    sync::mpsc::{self, WeakSender},
    time::timeout,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    debug::opaque_debug,
    error::{Error, Result},
    http::server::{
        event_encoding::KEEP_ALIVE,
        response::{self, ResponseBody},
        serve::EventSource,
    },
    limits::Limits,
    session::driver::budget::Budget,
    transport::{
        principal::Principal,
        traits::{Frame, Messages, ReadHalf, Transport, WriteHalf},
    },
};

/// The number of messages that may wait in each direction. Beyond it, senders wait.
const CAPACITY: usize = 1;

/// One session of the 2024-11-05 transport (HTTP with SSE), for programs that route requests themselves. Other programs use
/// [`LegacySse`](super::LegacySse).
///
/// Messages of the server go into the event stream that answers the client's GET. Messages of the client arrive by POST: pass them
/// to the [`SseInbox`]. The session ends when the client closes the stream, and closing the session ends the stream. The transport
/// connects only once.
///
/// ```
/// use oxmcp::{Server, http::SseTransport};
///
/// # async fn example(server: Server) -> oxmcp::Result<()> {
/// // A client has requested a stream. It will post its messages to this URI, which names the session.
/// let (transport, inbox, response) = SseTransport::open("/messages?sessionId=7");
/// let session = server.connect(transport).await?;
/// // Answer the GET with `response`. For each POST whose URI names the session, answer 202 once this returns:
/// inbox.post(r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#).await?;
/// # Ok(())
/// # }
/// ```
///
/// See [HTTP with SSE](https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse).
pub struct SseTransport(Option<(SseReader, SseWriter)>);

impl SseTransport {
    /// Opens a session whose client posts its messages to `endpoint`, a URI that may be relative to that of the stream. Anyone who
    /// knows the URI can post, so it must contain a part that is impossible to guess, and requests to it must be checked like all
    /// others.
    ///
    /// Returns the transport to connect to a server, the inbox for posted messages, and the response to the GET.
    #[must_use]
    pub fn open(endpoint: &str) -> (Self, SseInbox, Response<ResponseBody>) {
        Self::open_in(endpoint, None)
    }

    /// Opens a session like [`open`](Self::open), with pending events that count against a budget.
    pub(crate) fn open_in(
        endpoint: &str,
        budget: Option<&Arc<Budget>>,
    ) -> (Self, SseInbox, Response<ResponseBody>) {
        let (inbox, posts) = mpsc::channel(CAPACITY);
        let (writer, events) = mpsc::channel(CAPACITY);
        let disconnected = CancellationToken::new();
        let sender = writer.downgrade();
        let stream = Events {
            first: Some(event("endpoint", endpoint.as_bytes())),
            events,
            _disconnected: disconnected.clone().drop_guard(),
        };
        let reader = SseReader {
            posts,
            disconnected,
            current: Post::default(),
            max_message_bytes: 0,
        };
        let writer = SseWriter {
            events: Some(writer),
            budget: budget.map(Arc::clone),
        };
        let events = Box::pin(stream::unfold(stream, Events::next));
        let body = ResponseBody::events(SentEvents {
            sender,
            is_begun: false,
            events,
        });
        (
            Self(Some((reader, writer))),
            SseInbox(inbox),
            response::events(body),
        )
    }
}

impl Transport for SseTransport {
    type Read = SseReader;
    type Write = SseWriter;

    async fn connect(&mut self, limits: &Limits) -> Result<(SseReader, SseWriter)> {
        let (mut reader, writer) = self.0.take().ok_or_else(|| {
            Error::misuse("SSE session was already connected: open a new session for each stream")
        })?;
        reader.max_message_bytes = limits.max_message_bytes;
        Ok((reader, writer))
    }

    fn name(&self) -> String {
        "the client".into()
    }

    /// Modern revisions do not have this transport.
    fn is_legacy(&self) -> bool {
        true
    }
}

impl fmt::Debug for SseTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SseTransport")
            .field("connected", &self.0.is_none())
            .finish()
    }
}

/// The inbox for the messages that a session's client posts, from [`SseTransport::open`]. Dropping the last clone ends the session.
#[derive(Clone)]
pub struct SseInbox(mpsc::Sender<Post>);

/// A posted message, and its sender, if the sender is known.
type Post = (Bytes, Option<Principal>);

impl SseInbox {
    /// Passes a message to the session, and waits until the session can accept it. Then answer the POST with 202; the response to
    /// the message goes into the stream.
    ///
    /// # Errors
    /// If the session has ended. Answer the POST with 404.
    ///
    /// # Cancel safety
    /// If the future is dropped before it returns, the session does not receive the message.
    pub async fn post(&self, message: impl Into<Bytes> + Send) -> Result<()> {
        self.post_from(message.into(), None).await
    }

    /// Posts a message from a known sender, the caller of its request.
    pub(crate) async fn post_from(&self, message: Bytes, sender: Option<Principal>) -> Result<()> {
        let posted = self.0.send((message, sender)).await;
        posted.map_err(|_| Error::closed("the session has ended"))
    }
}

impl fmt::Debug for SseInbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SseInbox")
            .field("open", &!self.0.is_closed())
            .finish()
    }
}

/// Reads the messages that the client of an [`SseTransport`] posts.
pub struct SseReader {
    posts: mpsc::Receiver<Post>,
    /// Set when the client closes its stream.
    disconnected: CancellationToken,
    current: Post,
    max_message_bytes: usize,
}

impl ReadHalf for SseReader {
    async fn read(&mut self) -> Result<Option<Frame<'_>>> {
        let post = select! {
            // Messages posted before the client disconnected are still read, as at the end of a pipe.
            biased;
            post = self.posts.recv() => post,
            () = self.disconnected.cancelled() => None,
        };
        let Some(post) = post else {
            return Ok(None);
        };
        self.current = post;
        let (message, sender) = &self.current;
        Ok(Some(match sender {
            _ if message.len() > self.max_message_bytes => Frame::TooLong { beginning: b"" },
            Some(sender) => Frame::MessageFrom { message, sender },
            None => Frame::Message(message),
        }))
    }

    fn is_drained(&self) -> bool {
        self.posts.is_empty()
    }
}

opaque_debug!(SseReader, |it| { disconnected: it.disconnected.is_cancelled() });

/// Writes to the stream of an [`SseTransport`].
pub struct SseWriter {
    /// `None` after the writer was closed.
    events: Option<mpsc::Sender<Bytes>>,
    /// The budget for events that the client has not read yet, if any.
    budget: Option<Arc<Budget>>,
}

impl WriteHalf for SseWriter {
    async fn write(&mut self, messages: Messages<'_>) -> Result<()> {
        let closed = || Error::closed("the client closed its event stream");
        let Some(writer) = &self.events else {
            return Err(closed());
        };
        // The driver keeps the messages while this waits.
        let length = messages.as_lines().len();
        let _waiting = self.budget.as_ref().map(|it| it.charge(length));
        let mut events = Vec::new();
        for message in messages {
            write_event(&mut events, "message", message);
        }
        let events = match &self.budget {
            Some(budget) => budget.charge(events.len()).with(events),
            None => events.into(),
        };
        // While the client does not read, this waits, and the session receives no more messages from the client.
        writer.send(events).await.map_err(|_| closed())
    }

    async fn close(&mut self) -> Result<()> {
        self.events = None;
        Ok(())
    }
}

impl fmt::Debug for SseWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SseWriter")
            .field("open", &self.events.is_some())
            .finish()
    }
}

fn event(name: &str, data: &[u8]) -> Bytes {
    let mut event = Vec::new();
    write_event(&mut event, name, data);
    event.into()
}

fn write_event(out: &mut Vec<u8>, name: &str, data: &[u8]) {
    let event = OutgoingEvent {
        name: Some(name),
        data,
        ..OutgoingEvent::default()
    };
    event.write(out);
}

/// The events of a stream, and their sender.
struct SentEvents {
    sender: WeakSender<Bytes>,
    /// Whether the client has read any event.
    is_begun: bool,
    events: BoxStream<'static, Bytes>,
}

impl Stream for SentEvents {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.is_begun = true;
        self.events.as_mut().poll_next(cx)
    }
}

impl EventSource for SentEvents {
    fn is_counted(&self) -> bool {
        true
    }

    fn has_data(&self) -> bool {
        // If the sender is gone, the client has yet to read the end of the stream.
        let sender = self.sender.upgrade();
        !self.is_begun || sender.is_none_or(|sender| sender.capacity() < CAPACITY)
    }
}

/// The contents of the stream.
struct Events {
    /// The event with the URI to post to.
    first: Option<Bytes>,
    events: mpsc::Receiver<Bytes>,
    /// Tells the session when the client drops the stream.
    _disconnected: DropGuard,
}

impl Events {
    async fn next(mut self) -> Option<(Bytes, Self)> {
        if let Some(first) = self.first.take() {
            return Some((first, self));
        }
        let next = match timeout(KEEP_ALIVE, self.events.recv()).await {
            Ok(next) => next?,
            Err(_) => {
                let mut comment = Vec::new();
                write_comment(&mut comment, "keep-alive");
                comment.into()
            }
        };
        Some((next, self))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn unread_messages_count_toward_the_budget() {
        let budget = Budget::new(1 << 20);
        let (mut transport, _inbox, response) = SseTransport::open_in("/messages", Some(&budget));
        let (_reader, mut writer) = transport.connect(&Limits::default()).await.unwrap();
        let line = [&[b'1'; 1000][..], b"\n"].concat();
        writer.write(Messages::new(&line)).await.unwrap();
        let in_channel = budget.used();
        assert!((1000..1100).contains(&in_channel), "{in_channel}");
        let mut waiting = Box::pin(writer.write(Messages::new(&line)));
        assert!(waiting.as_mut().now_or_never().is_none());
        assert_eq!(budget.used(), in_channel * 2 + line.len());
        drop(response);
        assert!(waiting.await.is_err());
        assert_eq!(budget.used(), 0);
    }
}
