//! Relays messages that clients post to this node but other nodes need: answers to questions, cancellations, and progress.
//! Requests are not relayed, since any node can serve them.

use std::{future::pending, sync::Arc, time::Duration};

use futures_core::future::BoxFuture;
use http::{Response, StatusCode};
use oxmcp_protocol::{
    CancelledParams, Payload, ProgressParams, RequestId,
    internal::{Envelope, RawNotification, RequestParams},
};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::{
    select,
    time::{Instant, sleep},
};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::{
    leased::RETRY,
    questions,
    session_bus::{Confirmation, Confirmations, Undelivered, tell_message},
};
use crate::{
    error::{Error, Result},
    http::server::{
        endpoint::StreamableHttp,
        response::{self, ResponseBody},
        sessions::{Session, SessionGuard},
    },
    session::{
        driver::budget::Charge,
        task::{after, spawn},
    },
    store::{EventBatch, Replay, StreamWrite},
};

/// The time for which a message waits for the store and the bus, as long as a question waits for its answer by default.
const WAITS: Duration = Duration::from_secs(10 * 60);

/// The time within which nodes find that a store is available again and repeat their questions in it.
const REAPPEARS: Duration = Duration::from_secs(30);

/// A message that may be for another node.
enum Stray {
    /// An answer to the question with this ID.
    Answer(i64),
    /// A notification that concerns a request or a question.
    Notification,
}

/// The relay of the messages that a session has received on this node.
#[derive(Clone)]
pub(crate) struct Relay {
    pub(crate) endpoint: StreamableHttp,
    pub(crate) session: Arc<Session>,
    /// The messages of the session that wait for other nodes.
    pub(crate) undelivered: Arc<Undelivered>,
    /// The answers among them that other nodes may already have.
    pub(crate) confirmations: Arc<Confirmations>,
}

/// Relays a message that does not concern this node, and may concern another one. `None` if it is for this node.
pub(crate) fn relay(
    from: Relay,
    message: &Envelope<'_, RequestParams<'_>>,
    text: &[u8],
) -> Option<BoxFuture<'static, Response<ResponseBody>>> {
    let stray = stray(&from.session, message)?;
    let text = str::from_utf8(text).ok()?.to_owned();
    let session = from.session.enter();
    Some(Box::pin(async move {
        if from.deliver(session, stray, text).await {
            return response::empty(StatusCode::ACCEPTED);
        }
        let why = Error::internal(
            "could not pass the message to its node: too many messages are waiting for the store; try again later",
        );
        *response::unserved(None, &why)
    }))
}

/// Relays such messages of a batch. `None` if there are none.
pub(crate) fn relay_batch(from: Relay, body: &[u8]) -> Option<BoxFuture<'static, ()>> {
    let session = &from.session;
    let messages: Vec<&RawValue> = serde_json::from_slice(body).ok()?;
    let mut strays = Vec::new();
    for message in messages
        .into_iter()
        .take(session.connection().limits.max_batch)
    {
        let mut params = RequestParams::unread();
        if let Ok(parsed) = Envelope::parse_str(message.get(), &mut params)
            && let Some(stray) = stray(session, &parsed)
        {
            strays.push((stray, message.get().to_owned()));
        }
    }
    if strays.is_empty() {
        return None;
    }
    Some(Box::pin(async move {
        for (stray, text) in strays {
            // The response to a batch cannot report a failure; the log does.
            from.deliver(from.session.enter(), stray, text).await;
        }
    }))
}

/// Checks whether a message concerns a request or a question that this node does not know.
fn stray(session: &Session, message: &Envelope<'_, RequestParams<'_>>) -> Option<Stray> {
    let calls = session.connection().calls();
    match message {
        Envelope::Request(_) => None,
        Envelope::Response(response) => {
            let id = response.id.as_ref()?.own_number()?;
            (id > 0 && !calls.is_waiting(id)).then_some(Stray::Answer(id))
        }
        Envelope::Notification(notification) => {
            let is_known = concerns(session, notification)?;
            (!is_known).then_some(Stray::Notification)
        }
    }
}

/// Whether a message that another node has received concerns a request or a question of this node.
pub(crate) fn is_awaited(session: &Session, message: &Envelope<'_, RequestParams<'_>>) -> bool {
    match message {
        Envelope::Request(_) => false,
        Envelope::Response(_) => {
            answered_question(message).is_some_and(|id| session.connection().calls().is_waiting(id))
        }
        Envelope::Notification(notification) => concerns(session, notification) == Some(true),
    }
}

/// The ID of the question that a message answers.
pub(crate) fn answered_question(message: &Envelope<'_, RequestParams<'_>>) -> Option<i64> {
    match message {
        Envelope::Response(response) => response.id.as_ref()?.own_number(),
        _ => None,
    }
}

/// Whether a notification concerns a request or a question of this node. `None` for other notifications.
fn concerns(
    session: &Session,
    notification: &RawNotification<'_, RequestParams<'_>>,
) -> Option<bool> {
    let connection = session.connection();
    match &*notification.method {
        "notifications/cancelled" => {
            let params: CancelledParams = decode(notification)?;
            let id = params.request_id?;
            let has = |id: &RequestId| connection.in_flight().has(id);
            Some(has(&id) || id.respelled().is_some_and(|id| has(&id)))
        }
        "notifications/progress" => {
            let params: ProgressParams = decode(notification)?;
            let token = params.progress_token.own_number()?;
            Some(connection.calls().is_waiting(token))
        }
        _ => None,
    }
}

fn decode<T: Payload + DeserializeOwned>(
    notification: &RawNotification<'_, RequestParams<'_>>,
) -> Option<T> {
    T::from_json(notification.params?.raw.get()).ok()
}

/// The outcome of relaying a message.
enum Relayed {
    Delivered,
    /// Other nodes were notified of an answer, but the store does not know its question, and none has confirmed it yet.
    Told,
}

/// A waiting message, with its permits.
struct Waiting {
    from: Relay,
    _session: SessionGuard,
    stray: Stray,
    text: String,
    /// Arrives when the node that asked has the answer.
    confirmation: Option<Confirmation>,
    _charge: Charge,
    /// Closing waits for the message.
    _open: TaskTrackerToken,
}

impl Waiting {
    /// `None` if too many messages wait.
    fn new(from: Relay, session: SessionGuard, stray: Stray, text: String) -> Option<Self> {
        let state = &from.endpoint.state;
        let mut charge = state.budget.charge(0);
        if !charge.grow(text.len()) || !from.undelivered.enter() {
            return None;
        }
        if !state.session_bus.undelivered.enter() {
            from.undelivered.leave();
            return None;
        }
        Some(Self {
            _charge: charge,
            _open: state.open.token(),
            from,
            _session: session,
            stray,
            text,
            confirmation: None,
        })
    }

    /// Relays the message when the store and the bus work again, or gives up when the endpoint has closed.
    async fn deliver(self) {
        let Self {
            from,
            stray,
            text,
            confirmation,
            ..
        } = &self;
        let confirmed = || confirmation.as_ref().is_some_and(Confirmation::has_arrived);
        let state = &from.endpoint.state;
        let mut given_up = after(Instant::now(), WAITS);
        let mut is_known = true;
        while Instant::now() < given_up && !state.drained.is_set() {
            select! {
                () = sleep(RETRY) => {}
                () = state.drained.wait() => {}
                () = arrival(confirmation.as_ref()) => {}
            }
            if confirmed() {
                return;
            }
            match from.relay(stray, text).await {
                Ok(Relayed::Delivered) => return,
                // The node that has asked may not have reached the store or the bus again.
                Ok(Relayed::Told) if is_known => {
                    is_known = false;
                    given_up = given_up.min(after(Instant::now(), REAPPEARS));
                }
                Ok(Relayed::Told) | Err(_) => {}
            }
        }
        if is_known {
            tracing::warn!("dropping a client message for another node");
        }
    }
}

/// Waits until an answer has arrived. Never ends for other messages.
async fn arrival(confirmation: Option<&Confirmation>) {
    match confirmation {
        Some(confirmation) => confirmation.arrival().await,
        None => pending().await,
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.from.undelivered.leave();
        let state = &self.from.endpoint.state;
        state.session_bus.undelivered.leave();
    }
}

impl Relay {
    /// Relays a message. If the store or the bus fails, the message waits here, because a client posts an answer only once. Returns
    /// false if too many messages wait.
    async fn deliver(&self, session: SessionGuard, stray: Stray, text: String) -> bool {
        let confirmation = match &stray {
            Stray::Answer(id) => Some(self.confirmations.expect(*id)),
            Stray::Notification => None,
        };
        let relayed = self.relay(&stray, &text).await;
        if matches!(relayed, Ok(Relayed::Delivered)) {
            return true;
        }
        let waiting = Waiting::new(self.clone(), session, stray, text);
        let is_kept = waiting.is_some() || relayed.is_ok();
        if let Err(error) = relayed {
            tracing::warn!(%error, is_kept, "could not pass a client message to another node");
        }
        if let Some(mut waiting) = waiting {
            waiting.confirmation = confirmation;
            spawn(waiting.deliver());
        }
        is_kept
    }

    /// Relays a message to the node that waits for it, if there is one.
    ///
    /// # Errors
    /// If it is unknown whether the node receives it.
    async fn relay(&self, stray: &Stray, text: &str) -> Result<Relayed> {
        let (session, settings) = (&self.session, &self.endpoint.settings);
        let tell = || tell_message(settings.bus.as_ref(), session.id(), text);
        if let (Stray::Answer(id), Some(store)) = (stray, &settings.events) {
            let place = questions::place(store, session.id(), *id);
            match place.after(0, 0).await? {
                Replay::Events { ended: false, .. } => {
                    let answer = EventBatch::from_iter([text]);
                    let left = place.append(StreamWrite::new(answer).ending()).await;
                    // A refusal means that the question has been answered.
                    return match left {
                        Err(error) if !error.is_refusal() => Err(error),
                        _ => Ok(Relayed::Delivered),
                    };
                }
                Replay::Events { .. } => return Ok(Relayed::Delivered),
                // The store may have been full or unavailable when the question was asked.
                Replay::Lost => {
                    tell().await?;
                    return Ok(Relayed::Told);
                }
            }
        }
        tell().await?;
        Ok(Relayed::Delivered)
    }
}
