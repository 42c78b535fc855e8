//! A stream of server-sent events, over one response or several.

use std::time::Duration;

use bytes::Bytes;
use oxmcp_protocol::framing::sse::{EventDecoder, StreamItem};
use tokio::time::{Instant, timeout_at};

use crate::{
    error::Error,
    http::client::{
        exchange::{response::TRAILING, shared::Exchanges, sink::MessageSink},
        transport::http_client::HttpBody,
    },
};

/// A stream of events, which further responses may resume.
pub(crate) struct EventStream<'a> {
    /// The id of the last event.
    pub(crate) last_id: String,
    /// The pause that the server asks for before the stream is resumed.
    pub(crate) retry: Option<Duration>,
    /// The sink of the messages in the stream.
    pub(crate) sink: MessageSink<'a>,
}

/// The end of an event stream.
#[derive(Debug)]
pub(crate) enum StreamEnd {
    /// The request is answered.
    Answered,
    /// The stream was interrupted, with the reason `why`. `progressed` tells whether it has brought further events.
    Interrupted { progressed: bool, why: Error },
    /// The stream brought an event that is too long.
    TooLong(Error),
}

impl<'a> EventStream<'a> {
    pub(crate) fn new(sink: MessageSink<'a>) -> Self {
        Self {
            last_id: String::new(),
            retry: None,
            sink,
        }
    }

    /// Whether the stream can be resumed.
    pub(crate) fn is_resumable(&self) -> bool {
        !self.last_id.is_empty()
    }

    /// Reads a response to its end, and hands its messages to the sink.
    pub(crate) async fn read(&mut self, exchanges: &Exchanges, mut body: HttpBody) -> StreamEnd {
        let mut decoder = EventDecoder::new(exchanges.max_message).with_id(&self.last_id);
        let before = self.last_id.clone();
        let mut end = None;
        let why = loop {
            let chunk = match end {
                None => body.chunk().await,
                Some(end) => match timeout_at(end, body.chunk()).await {
                    Ok(chunk) => chunk,
                    Err(_) => return StreamEnd::Answered,
                },
            };
            let chunk = match chunk {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break Error::network("the server closed the event stream"),
                Err(error) => {
                    let why = error.message();
                    break Error::network(format!("lost the event stream: {why}"));
                }
            };
            if let Err(error) = self.take(exchanges, &mut decoder, &chunk).await {
                return StreamEnd::TooLong(error);
            }
            if end.is_none() && self.sink.has_answer {
                end = Some(Instant::now() + TRAILING);
            }
        };
        if self.sink.has_answer {
            return StreamEnd::Answered;
        }
        let progressed = self.last_id != before;
        StreamEnd::Interrupted { progressed, why }
    }

    /// Reads the events in a chunk.
    async fn take(
        &mut self,
        exchanges: &Exchanges,
        decoder: &mut EventDecoder,
        mut chunk: &[u8],
    ) -> Result<(), Error> {
        loop {
            match decoder.next(&mut chunk) {
                Ok(Some(StreamItem::Event(event))) => {
                    event.id.clone_into(&mut self.last_id);
                    if event.name == "message" && !event.data.trim_ascii().is_empty() {
                        let message = Bytes::copy_from_slice(event.data);
                        self.sink.take(exchanges, message).await;
                    }
                }
                Ok(Some(StreamItem::Id(id))) => id.clone_into(&mut self.last_id),
                Ok(Some(StreamItem::Retry(retry))) => self.retry = Some(retry),
                Ok(None) => return Ok(()),
                Err(overlong) => {
                    return Err(Error::limit(format!("lost the event stream: {overlong}")));
                }
            }
        }
    }
}
