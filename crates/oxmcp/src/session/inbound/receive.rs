//! Receiving messages: each is parsed and passed to the call that it answers, to the request that it concerns, or to the role.

use std::{sync::Arc, time::Duration};

use oxmcp_protocol::{
    CancelledParams, ErrorCode, ErrorObject, Payload, ProgressParams, RequestId,
    framing::after_byte_order_mark,
    internal::{
        Envelope, Malformed, Params, RawNotification, RawResponse, RequestParams, answered_ids,
        write_error,
    },
    lenient::Leniency,
};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::time::sleep;
use tracing::field::display;

use crate::{
    error::{Error, Result},
    logged::Logged,
    session::{
        connection::{Arrival, Connection, Side},
        inbound::batch::{Batch, parse_batch},
        outbound::calls::{Addressee, Answer, CallResult},
        task::spawn_on,
    },
    transport::{principal::Principal, traits::Frame},
};

/// The time that a call waits for its own response after an error without an ID, which may belong to it or to a notification.
const ERROR_GRACE: Duration = Duration::from_secs(5);

impl Connection {
    /// Removes the byte order mark that some peers put before each message. A second mark is an error.
    pub(crate) fn without_byte_order_mark<'a>(&self, frame: Frame<'a>) -> Frame<'a> {
        let is_usual = |bytes: &[u8]| bytes.first() == Some(&b'{');
        match frame.message() {
            Some((bytes, _)) if !is_usual(bytes) => match after_byte_order_mark(bytes) {
                Some(rest) if self.tolerates(Leniency::ByteOrderMark) => frame.with_message(rest),
                _ => frame,
            },
            _ => frame,
        }
    }

    /// Handles a frame that has arrived.
    pub(crate) fn take(self: &Arc<Self>, frame: Frame<'_>) {
        match frame {
            Frame::TooLong { beginning } => self.take_too_long(beginning),
            Frame::Message(bytes) => self.take_bytes(bytes, None),
            Frame::MessageFrom { message, sender } => self.take_bytes(message, Some(sender)),
            Frame::Failed { id, error } => {
                let known = id
                    .as_number()
                    .map(|own| self.calls().answer(own, Err(error)));
                if !matches!(known, Some(Ok(()))) {
                    tracing::debug!(id = %Logged(&id), "ignoring the failure of an unknown call");
                }
            }
        }
    }

    fn take_bytes(self: &Arc<Self>, bytes: &[u8], sender: Option<&Principal>) {
        match bytes.trim_ascii_start().first() {
            Some(b'[') => self.take_batch(bytes, sender, &[]),
            Some(_) => self.take_message(bytes, sender),
            None => {}
        }
    }

    fn take_too_long(&self, beginning: &[u8]) {
        let limit = self.limits.max_message_bytes;
        let why = format!("message skipped: it exceeds the limit of {limit} bytes");
        for id in answered_ids(beginning).filter_map(|id| id.own_number()) {
            // An unknown ID is ignored: its caller no longer waits.
            let _ = self.calls().answer(id, Err(Error::limit(why.clone())));
        }
        self.refuse(ErrorObject::new(ErrorCode::PARSE_ERROR, why));
    }

    fn take_message(self: &Arc<Self>, bytes: &[u8], sender: Option<&Principal>) {
        let mut params = RequestParams::unread();
        match Envelope::parse(bytes, &mut params) {
            Ok(envelope) => self.dispatch(envelope, sender, None),
            Err(malformed) => self.take_odd(malformed, bytes, sender, None),
        }
    }

    /// Handles a message that could not be read strictly: as the intended message, or as malformed.
    #[cold]
    fn take_odd(
        self: &Arc<Self>,
        malformed: Malformed,
        bytes: &[u8],
        sender: Option<&Principal>,
        batch: Option<&Arc<Batch>>,
    ) {
        let role = self.role();
        let mended = role.tolerance().mend(|| role.peer_name(), bytes);
        let mut params = RequestParams::unread();
        let envelope = mended.as_deref().map(|it| Envelope::parse(it, &mut params));
        match envelope {
            Some(Ok(envelope)) => self.dispatch(envelope, sender, batch),
            _ => self.take_malformed(malformed, bytes, batch),
        }
    }

    /// Handles a batch, except the requests in it that were cancelled while it waited.
    pub(crate) fn take_batch(
        self: &Arc<Self>,
        bytes: &[u8],
        sender: Option<&Principal>,
        cancelled: &[RequestId],
    ) {
        if !self.role().has_batches() {
            return self.refuse_batch(
                bytes,
                ErrorObject::new(
                    ErrorCode::INVALID_REQUEST,
                    "unsupported batch: only revision 2025-03-26 has batches; send one message at a time",
                ),
            );
        }
        let limit = self.limits.max_batch;
        let messages = match parse_batch(bytes, limit) {
            Ok(messages) => messages,
            Err(error) => {
                let error = ErrorObject::new(ErrorCode::PARSE_ERROR, format!("not JSON: {error}"));
                return self.refuse_batch(bytes, error);
            }
        };
        if messages.is_empty() || messages.len() > limit {
            return self.refuse_batch(
                bytes,
                ErrorObject::new(
                    ErrorCode::INVALID_REQUEST,
                    format!("invalid batch: expected 1 to {limit} messages"),
                ),
            );
        }
        self.take_messages(&messages, sender, cancelled);
    }

    fn take_messages(
        self: &Arc<Self>,
        messages: &[&RawValue],
        sender: Option<&Principal>,
        cancelled: &[RequestId],
    ) {
        let mut params = vec![RequestParams::UNREAD; messages.len()];
        let parsed: Vec<_> = messages
            .iter()
            .zip(&mut params)
            .map(|(raw, params)| (Envelope::parse_str(raw.get(), params), raw.get()))
            .filter(|(message, _)| match message {
                Ok(Envelope::Request(request)) => !cancelled.contains(&request.id),
                _ => true,
            })
            .collect();
        let side = self.role().side();
        let answers = parsed.iter().filter(|(it, _)| is_answered(it, side));
        let answers = answers.count();
        if answers == 0 {
            // Over HTTP, the stream must not wait for responses.
            self.outbox.append_inline(|_| ());
        }
        let batch = Arc::new(Batch::new(answers));
        for (message, text) in parsed {
            match message {
                Ok(envelope) => self.dispatch(envelope, sender, Some(&batch)),
                Err(malformed) => {
                    self.take_odd(malformed, text.as_bytes(), sender, Some(&batch));
                }
            }
        }
    }

    /// Handles a single message that was already parsed.
    #[cfg(feature = "http-server")]
    pub(crate) fn take_envelope(self: &Arc<Self>, envelope: Envelope<'_, RequestParams<'_>>) {
        self.dispatch(envelope, None, None);
    }

    fn dispatch(
        self: &Arc<Self>,
        envelope: Envelope<'_, RequestParams<'_>>,
        sender: Option<&Principal>,
        batch: Option<&Arc<Batch>>,
    ) {
        match envelope {
            Envelope::Request(request) => {
                match self.in_flight().admit(&request.id, &request.method) {
                    Ok(()) => self.role().request(
                        self,
                        Arrival {
                            id: request.id,
                            method: &request.method,
                            params: request.params,
                            sender: sender.cloned(),
                            batch: batch.cloned(),
                        },
                    ),
                    Err(error) => {
                        self.refuse_in(batch, Some(&request.id), &ErrorObject::from(&error));
                    }
                }
            }
            Envelope::Notification(notification) => {
                self.take_notification(notification, sender);
            }
            Envelope::Response(response) => self.take_response(response),
        }
    }

    /// Handles a notification. Cancellation and progress concern the calls in flight, in every role; the role handles the
    /// others.
    fn take_notification(
        self: &Arc<Self>,
        notification: RawNotification<'_, RequestParams<'_>>,
        sender: Option<&Principal>,
    ) {
        match &*notification.method {
            "notifications/cancelled" => match self.decode::<CancelledParams>(&notification) {
                Some(CancelledParams {
                    request_id: Some(id),
                    reason,
                    ..
                }) => {
                    let cancel =
                        |id: &RequestId| self.in_flight().cancel(id) || self.role().ended(self, id);
                    // Some peers send a number as text.
                    let known = cancel(&id) || id.respelled().is_some_and(|id| cancel(&id));
                    let reason = reason.map(|reason| display(Logged(reason)));
                    tracing::debug!(id = %Logged(&id), reason, known, "peer cancelled a request");
                }
                _ => tracing::debug!("ignoring a cancellation without a request ID"),
            },
            "notifications/progress" => {
                let known = self
                    .decode::<ProgressParams>(&notification)
                    .is_some_and(|params| self.calls().progress(params));
                if !known {
                    tracing::debug!("ignoring progress of an unknown call");
                }
            }
            _ => self.role().notification(self, notification, sender),
        }
    }

    fn decode<T: Payload + DeserializeOwned>(
        &self,
        notification: &RawNotification<'_, RequestParams<'_>>,
    ) -> Option<T> {
        self.read(&notification.method, notification.params?.raw.get())
            .ok()
    }

    /// Passes a response to its call, after the handlers of earlier notifications have begun, so that the caller sees their
    /// effects.
    fn answer_in_order(self: &Arc<Self>, id: i64, answer: Answer) -> Result<(), Answer> {
        let Some(queue) = self.awaited_notifications() else {
            return self.calls().answer(id, answer);
        };
        self.calls().answer_held(id, answer)?;
        let connection = Arc::downgrade(self);
        queue.when_begun(Box::new(move || {
            if let Some(connection) = connection.upgrade() {
                connection.calls().release(id);
            }
        }));
        Ok(())
    }

    fn take_response(self: &Arc<Self>, response: RawResponse<'_, RequestParams<'_>>) {
        let RawResponse { id, outcome, found } = response;
        let answer = outcome
            .map(|result| CallResult {
                json: result.get().into(),
                result_index: found.result_index,
            })
            .map_err(Error::from);
        let Some(id) = id else {
            // Without an ID and an error, the message is not a response.
            return self.take_error_without_id(answer.err());
        };
        let own = id.own_number();
        let is_own = id.as_number().is_some()
            || own.is_some_and(|own| {
                self.calls().is_waiting(own) && self.tolerates(Leniency::TextId)
            });
        let ignored = match own.filter(|_| is_own) {
            Some(own) => self.answer_in_order(own, answer).err(),
            None => Some(answer),
        };
        if let Some(answer) = ignored {
            let error = answer.err().map(|error| display(Logged(error)));
            tracing::debug!(id = %Logged(&id), error, "ignoring a response to an unknown call");
        }
    }

    /// Handles an error without a request ID. It answers the only request in flight, unless it may be a response to a
    /// notification, which some servers send.
    fn take_error_without_id(self: &Arc<Self>, error: Option<Error>) {
        let Some(error) = error else { return };
        tracing::warn!(error = %Logged(&error), "received an error without a request ID");
        if !self.tolerates(Leniency::MissingId) {
            return;
        }
        match self.calls().answered_without_id() {
            Addressee::Call(id) => {
                // The call may have been answered meanwhile.
                let _ = self.answer_in_order(id, Err(error));
            }
            Addressee::CallOrNotification(id) => {
                let connection = Arc::downgrade(self);
                spawn_on(&self.runtime, async move {
                    sleep(ERROR_GRACE).await;
                    if let Some(connection) = connection.upgrade() {
                        let _ = connection.answer_in_order(id, Err(error));
                    }
                });
            }
            Addressee::Unknown => {}
        }
    }

    /// Handles a malformed message. A server responds with the error, and so does a client to a malformed request. Of other
    /// malformed messages, a client keeps the first one for diagnosis.
    fn take_malformed(&self, malformed: Malformed, bytes: &[u8], batch: Option<&Arc<Batch>>) {
        let side = self.role().side();
        let is_refused = is_refused(&malformed, side);
        let Malformed {
            id, answers, error, ..
        } = malformed;
        let is_client = side == Side::Client;
        if is_client {
            let error = Logged(&error.message);
            // Only the first of a connection is a warning: a server could otherwise flood the log.
            if self.heard_noise(bytes) {
                tracing::warn!(%error, "received an invalid message from the server");
            } else {
                tracing::debug!(%error, "received an invalid message from the server");
            }
        }
        // A malformed response is still the response: its caller must not wait for another.
        if let Some(id) = &answers {
            self.fail_answered(id, &error);
        }
        if is_refused {
            self.refuse_in(batch, id.as_ref(), &error);
        }
    }

    fn fail_answered(&self, id: &RequestId, error: &ErrorObject) {
        if let Some(id) = id.own_number() {
            let error = Error::decode(format!("malformed response: {}", error.message));
            // An unknown ID is ignored: its caller no longer waits.
            let _ = self.calls().answer(id, Err(error));
        }
    }

    /// Rejects a batch, and fails the calls whose responses are in it.
    fn refuse_batch(&self, bytes: &[u8], error: ErrorObject) {
        for id in answered_ids(bytes) {
            self.fail_answered(&id, &error);
        }
        self.refuse(error);
    }

    /// Rejects a message without an ID.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the refused message ends here"
    )]
    fn refuse(&self, error: ErrorObject) {
        if self.role().side() == Side::Client {
            // A server cannot process an error without an ID.
            tracing::debug!(error = %Logged(&error.message), "rejected a message from the server");
            return;
        }
        self.refuse_in(None, None, &error);
    }

    fn refuse_in(&self, batch: Option<&Arc<Batch>>, id: Option<&RequestId>, error: &ErrorObject) {
        let Some(batch) = batch else {
            self.outbox.append_inline(|out| write_error(out, id, error));
            return;
        };
        let mut answer = Vec::new();
        write_error(&mut answer, id, error);
        if let Some(whole) = batch.answered(Some(&answer)) {
            self.outbox
                .append_inline(|out| out.extend_from_slice(&whole));
        }
    }
}

/// Whether an element of a batch gets a response.
fn is_answered(parsed: &Result<Envelope<'_, RequestParams<'_>>, Malformed>, side: Side) -> bool {
    match parsed {
        Ok(Envelope::Request(_)) => true,
        Ok(_) => false,
        Err(malformed) => is_refused(malformed, side),
    }
}

/// Whether the sender gets an error. Servers may write log lines to their output, so a client responds only to messages that
/// are certainly requests.
fn is_refused(malformed: &Malformed, side: Side) -> bool {
    side == Side::Server || malformed.is_asked && malformed.id.is_some()
}
