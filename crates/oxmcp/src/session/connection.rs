//! The state of a connection, which its driver, its handlers and its session handles share.

use std::{
    borrow::Cow,
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use serde_json::value::RawValue;

use crate::{
    Error, Limits, Result,
    jsonrpc::{
        Envelope, ErrorCode, ErrorObject, Malformed, RawNotification, RawResponse, write_error,
    },
    protocol::{CancelledParams, ProgressParams},
    session::{
        Arrival, Batch, Role, Side,
        calls::{Calls, own_id},
        cancel::CancelSignal,
        inflight::InFlight,
        lane::Lane,
        outbox::Outbox,
    },
    transport::Frame,
};

/// How much of a line that is no message is kept for the diagnosis.
const KEPT_NOISE: usize = 200;

/// One connection.
pub(crate) struct Connection {
    role: Arc<dyn Role>,
    pub(crate) limits: Limits,
    pub(crate) outbox: Outbox,
    pub(crate) calls: Calls,
    pub(crate) in_flight: InFlight,
    pub(crate) lane: Arc<Lane>,
    /// Set when this side wants to close.
    closing: CancelSignal,
    /// Set when the driver has ended; then `outcome` holds why.
    ended: CancelSignal,
    outcome: OnceLock<Outcome>,
    /// The first line from the peer that was no message: it often says why nothing works.
    noise: Mutex<Option<String>>,
}

/// How a connection ended.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// One of the two sides closed it.
    Closed,
    /// It broke.
    Failed(String),
}

impl Connection {
    pub(crate) fn new(role: Arc<dyn Role>, limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            role,
            outbox: Outbox::new(limits.max_unsent_bytes),
            calls: Calls::default(),
            in_flight: InFlight::new(limits.max_in_flight),
            lane: Lane::new(limits.max_queued_notifications),
            closing: CancelSignal::default(),
            ended: CancelSignal::default(),
            outcome: OnceLock::new(),
            noise: Mutex::default(),
            limits,
        })
    }

    pub(crate) fn role(&self) -> &Arc<dyn Role> {
        &self.role
    }

    /// Asks the driver to close: nothing new is begun, what runs may finish within a bound.
    pub(crate) fn begin_close(&self) {
        self.closing.set();
        self.outbox.call_attention();
    }

    /// Ends the connection without waiting for anything: the peer is beyond hope.
    pub(crate) fn break_off(self: &Arc<Self>, reason: &str) {
        self.cut(Outcome::Failed(reason.to_owned()));
        self.begin_close();
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.is_set()
    }

    /// Waits until the connection has ended. Cancel safe.
    pub(crate) async fn ended(&self) -> Outcome {
        self.ended.wait().await;
        self.outcome.get().cloned().unwrap_or(Outcome::Closed)
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.ended.is_set()
    }

    /// For the driver: nothing can be sent or received any more. Fails what waits, and stops what runs.
    pub(crate) fn cut(self: &Arc<Self>, outcome: Outcome) {
        let reason = match &outcome {
            Outcome::Closed if self.is_closing() => "the session was closed".to_owned(),
            Outcome::Closed => "the peer closed the connection".to_owned(),
            Outcome::Failed(reason) => reason.clone(),
        };
        let reason = match self.noise() {
            Some(noise) if !self.is_closing() => {
                format!("{reason}; the first line that was no message: {noise:?}")
            }
            _ => reason,
        };
        // Only the first outcome counts.
        let _ = self.outcome.set(outcome);
        self.in_flight.drain();
        self.in_flight.cancel_all();
        self.calls.close(&reason);
        self.outbox.close();
    }

    /// For the driver: the transport is closed too.
    pub(crate) fn finished(self: &Arc<Self>) {
        self.ended.set();
        self.role.closed(self);
    }

    /// The first line from the peer that was no message.
    pub(crate) fn noise(&self) -> Option<String> {
        self.noise
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Sends a notification that `write` serializes.
    pub(crate) fn notify_raw(
        &self,
        write: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>,
    ) -> Result<()> {
        match self.outbox.append(write) {
            None => Err(Error::closed("the session has ended")),
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => {
                Err(Error::misuse(format!("the params are no JSON: {error}")).with_source(error))
            }
        }
    }

    /// For the driver: takes what arrived.
    pub(crate) fn take(self: &Arc<Self>, frame: Frame<'_>) {
        match frame {
            Frame::TooLong => self.refuse(
                None,
                ErrorObject::new(
                    ErrorCode::PARSE_ERROR,
                    format!(
                        "the message is longer than {} bytes, which is the limit; it was skipped",
                        self.limits.max_message_bytes
                    ),
                ),
            ),
            Frame::Message(bytes) => match bytes.trim_ascii_start().first() {
                Some(b'[') => self.take_batch(bytes),
                Some(_) => self.take_message(bytes),
                None => {}
            },
        }
    }

    fn take_message(self: &Arc<Self>, bytes: &[u8]) {
        match Envelope::parse(bytes) {
            Ok(envelope) => self.dispatch(envelope, None),
            Err(malformed) => self.take_malformed(malformed, bytes),
        }
    }

    fn take_batch(self: &Arc<Self>, bytes: &[u8]) {
        if !self.role.has_batches() {
            return self.refuse(
                None,
                ErrorObject::new(
                    ErrorCode::INVALID_REQUEST,
                    "batches exist in revision 2025-03-26 only; send one message at a time",
                ),
            );
        }
        let messages: Vec<&RawValue> = match serde_json::from_slice(bytes) {
            Ok(messages) => messages,
            Err(error) => {
                let error = ErrorObject::new(ErrorCode::PARSE_ERROR, format!("not JSON: {error}"));
                return self.refuse(None, error);
            }
        };
        if messages.is_empty() || messages.len() > self.limits.max_batch {
            return self.refuse(
                None,
                ErrorObject::new(
                    ErrorCode::INVALID_REQUEST,
                    format!("a batch holds 1 to {} messages", self.limits.max_batch),
                ),
            );
        }
        let parsed: Vec<_> = messages
            .iter()
            .map(|raw| Envelope::parse_str(raw.get()))
            .collect();
        let answers = parsed.iter().filter(|parsed| is_answered(parsed)).count();
        let batch = Arc::new(Batch::new(answers));
        for message in parsed {
            match message {
                Ok(envelope) => self.dispatch(envelope, Some(&batch)),
                Err(malformed) => self.refuse_in(Some(&batch), malformed.id, &malformed.error),
            }
        }
    }

    fn dispatch(self: &Arc<Self>, envelope: Envelope<'_>, batch: Option<&Arc<Batch>>) {
        match envelope {
            Envelope::Request(request) => match self.in_flight.admit(&request.id) {
                Ok(()) => self.role.request(
                    self,
                    Arrival {
                        request,
                        batch: batch.cloned(),
                    },
                ),
                Err(error) => self.refuse_in(batch, Some(request.id), &ErrorObject::from(&error)),
            },
            Envelope::Notification(notification) => self.take_notification(notification),
            Envelope::Response(response) => self.take_response(response),
        }
    }

    /// Cancellation and progress concern the calls in flight, whatever the role; the rest is the role's.
    fn take_notification(self: &Arc<Self>, notification: RawNotification<'_>) {
        match &*notification.method {
            "notifications/cancelled" => match decode::<CancelledParams>(notification.params) {
                Some(CancelledParams {
                    request_id: Some(id),
                    reason,
                    ..
                }) => {
                    let known = self.in_flight.cancel(&id);
                    tracing::debug!(%id, reason, known, "the peer cancelled a request");
                }
                _ => tracing::debug!("a cancellation that names no request was ignored"),
            },
            "notifications/progress" => {
                let known = decode::<ProgressParams>(notification.params)
                    .is_some_and(|params| self.calls.progress(params));
                if !known {
                    tracing::debug!("progress for an unknown call was ignored");
                }
            }
            _ => self.role.notification(self, notification),
        }
    }

    fn take_response(&self, response: RawResponse<'_>) {
        let waiter = response
            .id
            .as_ref()
            .and_then(own_id)
            .and_then(|id| self.calls.leave(id));
        let Some(waiter) = waiter else {
            let id = response
                .id
                .map_or(Cow::Borrowed("none"), |id| Cow::Owned(id.to_string()));
            let error = response.outcome.err();
            return tracing::debug!(%id, ?error, "a response to nothing that waits was ignored");
        };
        let answer = response.outcome.map(ToOwned::to_owned).map_err(Error::from);
        // Whoever dropped its receiver does not want to know.
        let _ = waiter.answer.send(answer);
    }

    /// A server says what is wrong with a message. A client cannot help a server that talks nonsense: it remembers the
    /// first for the diagnosis.
    fn take_malformed(&self, malformed: Malformed, bytes: &[u8]) {
        if self.role.side() == Side::Server {
            return self.refuse(malformed.id, malformed.error);
        }
        tracing::warn!(error = %malformed.error.message, "the server sent something that is no message");
        let shown = bytes.get(..KEPT_NOISE).unwrap_or(bytes);
        let mut noise = self.noise.lock().unwrap_or_else(PoisonError::into_inner);
        noise.get_or_insert_with(|| String::from_utf8_lossy(shown).into_owned());
        drop(noise);
        // An answer that cannot be understood is still the answer: its caller must not wait for another.
        if let Some(waiter) = malformed
            .id
            .as_ref()
            .and_then(own_id)
            .and_then(|id| self.calls.leave(id))
        {
            let error = Error::decode(format!(
                "the answer is malformed: {}",
                malformed.error.message
            ));
            let _ = waiter.answer.send(Err(error));
        }
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "the refused message ends here"
    )]
    fn refuse(&self, id: Option<crate::RequestId>, error: ErrorObject) {
        self.refuse_in(None, id, &error);
    }

    fn refuse_in(
        &self,
        batch: Option<&Arc<Batch>>,
        id: Option<crate::RequestId>,
        error: &ErrorObject,
    ) {
        let Some(batch) = batch else {
            self.outbox
                .append_from_driver(|out| write_error(out, id.as_ref(), error));
            return;
        };
        let mut answer = Vec::new();
        write_error(&mut answer, id.as_ref(), error);
        if let Some(whole) = batch.answered(Some(&answer)) {
            self.outbox
                .append_from_driver(|out| out.extend_from_slice(&whole));
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("side", &self.role.side())
            .field("unsent", &self.outbox.unsent())
            .field("closing", &self.is_closing())
            .field("ended", &self.is_ended())
            .finish_non_exhaustive()
    }
}

fn decode<T: serde::de::DeserializeOwned>(params: Option<&RawValue>) -> Option<T> {
    serde_json::from_str(params?.get()).ok()
}

/// Whether an element of a batch gets an answer.
fn is_answered(parsed: &Result<Envelope<'_>, Malformed>) -> bool {
    matches!(parsed, Err(_) | Ok(Envelope::Request(_)))
}
