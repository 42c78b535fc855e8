//! Relay of messages for other nodes that clients post to this node: answers to questions, cancellations, and progress.

use std::sync::Arc;

use futures_core::future::BoxFuture;
use http::{Response, StatusCode};
use oxmcp_protocol::{
    CancelledParams, Payload, ProgressParams,
    internal::{Envelope, RawNotification, RequestParams},
};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{super::session::Session, questions};
use crate::{
    error::{Error, Result},
    http::server::{
        endpoint::{EndpointRequest, StreamableHttp},
        response::{self, ResponseBody},
    },
    store::{EventBatch, Replay, StreamWrite},
};

/// A message that may be for another node.
enum Stray {
    /// An answer to the question with this id.
    Answer(i64),
    /// A notification that concerns a request or a question.
    Notification,
}

/// Relays a message that concerns nothing on this node, and may concern another node. `None` if it is for this node.
pub(in crate::http::server) fn relay(
    request: &EndpointRequest,
    message: &Envelope<'_, RequestParams<'_>>,
    text: &[u8],
) -> Option<BoxFuture<'static, Response<ResponseBody>>> {
    let session = request.session.as_ref().filter(|it| it.is_shared())?;
    let stray = stray(session, message)?;
    let text = str::from_utf8(text).ok()?.to_owned();
    let (endpoint, session) = (request.endpoint.clone(), session.enter());
    Some(Box::pin(async move {
        match endpoint.relay(&session, stray, text).await {
            Ok(()) => response::empty(StatusCode::ACCEPTED),
            Err(error) => {
                tracing::warn!(%error, "what another node waits for cannot be relayed");
                let why = Error::internal(
                    "another node waits for this, and cannot be reached now; try another time",
                );
                *response::refuse(StatusCode::SERVICE_UNAVAILABLE, None, &why)
            }
        }
    }))
}

/// Relays such messages of a batch. `None` if there are none.
pub(in crate::http::server) fn relay_batch(
    request: &EndpointRequest,
    body: &[u8],
) -> Option<BoxFuture<'static, ()>> {
    let session = request.session.as_ref().filter(|it| it.is_shared())?;
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
    let (endpoint, session) = (request.endpoint.clone(), session.enter());
    Some(Box::pin(async move {
        for (stray, text) in strays {
            if let Err(error) = endpoint.relay(&session, stray, text).await {
                tracing::warn!(%error, "what another node waits for cannot be relayed");
            }
        }
    }))
}

/// Checks whether a message concerns a request or a question, and none that this node knows.
fn stray(session: &Session, message: &Envelope<'_, RequestParams<'_>>) -> Option<Stray> {
    let calls = session.connection().calls();
    match message {
        Envelope::Request(_) => None,
        Envelope::Response(response) => {
            let id = response.id.as_ref()?.as_number()?;
            (id > 0 && !calls.is_waiting(id)).then_some(Stray::Answer(id))
        }
        Envelope::Notification(notification) => {
            let is_known = concerns(session, notification)?;
            (!is_known).then_some(Stray::Notification)
        }
    }
}

/// Whether a notification concerns a request or a question of this node. `None` if it is of another kind.
pub(super) fn concerns(
    session: &Session,
    notification: &RawNotification<'_, RequestParams<'_>>,
) -> Option<bool> {
    let connection = session.connection();
    match &*notification.method {
        "notifications/cancelled" => {
            let params: CancelledParams = decode(notification)?;
            Some(connection.in_flight().has(&params.request_id?))
        }
        "notifications/progress" => {
            let params: ProgressParams = decode(notification)?;
            let token = params.progress_token.as_number()?;
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

impl StreamableHttp {
    async fn relay(&self, session: &Arc<Session>, stray: Stray, text: String) -> Result<()> {
        match (stray, &self.settings.events) {
            (Stray::Answer(id), Some(store)) => {
                let place = questions::place(store, session.id(), id);
                match place.after(0, 0).await? {
                    Replay::Events { ended: false, .. } => {
                        let answer = EventBatch::from_iter([text]);
                        let left = place.append(StreamWrite::new(answer).ending()).await;
                        // A refusal means that the question was answered meanwhile.
                        left.map(drop).or_else(|error| {
                            if error.is_refusal() {
                                Ok(())
                            } else {
                                Err(error)
                            }
                        })
                    }
                    _ => {
                        tracing::debug!("an answer to what no node waits for was ignored");
                        Ok(())
                    }
                }
            }
            (Stray::Notification, _) => self.tell_notification(session, text).await,
            (Stray::Answer(_), None) => Ok(()),
        }
    }
}
