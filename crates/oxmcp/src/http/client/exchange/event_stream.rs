//! Reading a stream of events.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, timeout_at};

use crate::http::client::exchange::response::REST;
use crate::http::client::exchange::shared::Link;
use crate::http::client::exchange::sink::Taker;
use crate::http::client::transport::http_client::HttpBody;
use crate::{
    Error,
    codec::sse::{Decoder, Item},
};

/// A stream, which may go on over several connections.
pub(crate) struct Stream<'a> {
    /// The last id that it named.
    pub(crate) last_id: String,
    /// How long the server wants to be left alone after it broke off.
    pub(crate) retry: Option<Duration>,
    /// Who takes its messages.
    pub(crate) taker: Taker<'a>,
}

/// How a connection of a stream ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The request is answered.
    Answered,
    /// It broke off: whether it had got any further, and why.
    Cut { progressed: bool, why: Error },
    /// It brought an event that is too long.
    Overlong(Error),
}

impl<'a> Stream<'a> {
    pub(crate) fn new(taker: Taker<'a>) -> Self {
        Self {
            last_id: String::new(),
            retry: None,
            taker,
        }
    }

    /// Whether it can be taken up again.
    pub(crate) fn is_resumable(&self) -> bool {
        !self.last_id.is_empty()
    }

    /// Reads a connection to its end, and hands on the messages in it.
    pub(crate) async fn read(&mut self, link: &Link, mut body: HttpBody) -> Ended {
        let mut decoder = Decoder::new(link.max_message).with_id(&self.last_id);
        let before = self.last_id.clone();
        let mut end = None;
        let why = loop {
            let chunk = match end {
                None => body.chunk().await,
                Some(end) => match timeout_at(end, body.chunk()).await {
                    Ok(chunk) => chunk,
                    Err(_) => return Ended::Answered,
                },
            };
            let chunk = match chunk {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break Error::network("the server ended the stream of events"),
                Err(error) => {
                    let why = error.message();
                    break Error::network(format!("the stream of events broke off: {why}"));
                }
            };
            if let Err(error) = self.take(link, &mut decoder, &chunk).await {
                return Ended::Overlong(error);
            }
            if end.is_none() && self.taker.has_answer {
                end = Some(Instant::now() + REST);
            }
        };
        if self.taker.has_answer {
            return Ended::Answered;
        }
        let progressed = self.last_id != before;
        Ended::Cut { progressed, why }
    }

    /// Takes what a chunk holds.
    async fn take(
        &mut self,
        link: &Link,
        decoder: &mut Decoder,
        mut chunk: &[u8],
    ) -> Result<(), Error> {
        loop {
            match decoder.next(&mut chunk) {
                Ok(Some(Item::Event(event))) => {
                    event.id.clone_into(&mut self.last_id);
                    if event.name == "message" && !event.data.trim_ascii().is_empty() {
                        let message = Bytes::copy_from_slice(event.data);
                        self.taker.take(link, message).await;
                    }
                }
                Ok(Some(Item::Id(id))) => id.clone_into(&mut self.last_id),
                Ok(Some(Item::Retry(retry))) => self.retry = Some(retry),
                Ok(None) => return Ok(()),
                Err(overlong) => return Err(Error::limit(format!("{overlong}; it was not read"))),
            }
        }
    }
}
