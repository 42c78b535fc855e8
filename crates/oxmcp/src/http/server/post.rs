//! What is posted to an endpoint.

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::value::RawValue;

use crate::{
    http::server::{
        ResponseBody, answer,
        endpoint::{Asked, origin},
        exchange::Exchange,
        ladder::{self, Admitted, Refusal, Served},
        legacy,
    },
    jsonrpc::{Envelope, Params, RawRequest, RequestId},
    protocol::{
        Method, RequestParams,
        method::{CallTool, Initialize},
    },
    server::{Features, ServerPeer},
    session::Connection,
    transport::Frame,
};

type Message<'a> = Envelope<'a, RequestParams<'a>>;

/// Answers a POST.
pub(super) async fn post(asked: Asked, body: Bytes) -> Response<ResponseBody> {
    if body.trim_ascii_start().first() == Some(&b'[') {
        return batch(asked, body).await;
    }
    let mut params = RequestParams::UNREAD;
    let message = match Envelope::parse(&body, &mut params) {
        Ok(message) => message,
        Err(malformed) => {
            let refusal = Refusal::malformed(&malformed);
            return answer::refused(&refusal, malformed.id.as_ref());
        }
    };
    let admitted = admit(&asked.server.features(), &asked, &message);
    match admitted {
        Err(refusal) => answer::refused(&refusal, id_of(&message)),
        Ok(Admitted::Modern(_)) => modern(asked, message).await,
        Ok(Admitted::Legacy) => {
            let is_request = matches!(message, Envelope::Request(_));
            let id = id_of(&message).cloned();
            if !asked.names_session() && opens_session(&message) {
                return legacy::open(asked, |connection| connection.take_envelope(message)).await;
            }
            legacy::post(asked, id, is_request, |connection| {
                connection.take_envelope(message);
            })
            .await
        }
    }
}

/// Takes a message up the ladder.
fn admit(features: &Features, asked: &Asked, message: &Message<'_>) -> Result<Admitted, Refusal> {
    let headers = &asked.parts.headers;
    let admitted = ladder::admit(&Served::by(features), headers, message)?;
    if let (Admitted::Modern(_), Some(call)) = (admitted, tool_call(message))
        && let Some(tool) = call.params.and_then(|it| it.name)
        && let Some(expected) = features.param_headers(tool.as_str().as_deref().unwrap_or_default())
    {
        ladder::check_params(headers, expected, call.params)?;
    }
    Ok(admitted)
}

/// Answers a modern request on its own. A modern client knows of no session, whatever it may seem to name.
async fn modern(asked: Asked, message: Message<'_>) -> Response<ResponseBody> {
    let Asked {
        endpoint,
        mut server,
        session,
        parts,
    } = asked;
    if session.is_some() {
        server = match endpoint.choose(&parts) {
            Ok(server) => server,
            Err(response) => return *response,
        };
    }
    let is_request = matches!(message, Envelope::Request(_));
    let limits = server.features().limits.clone();
    let peer = ServerPeer::stateless(server);
    let connection = Connection::undriven(Arc::clone(&peer) as _, limits, origin(parts));
    connection.take_envelope(message);
    let exchange = Exchange::new(connection, peer, &endpoint.state);
    if !is_request {
        return answer::empty(StatusCode::ACCEPTED);
    }
    exchange.answer().await
}

/// Batches belong to sessions of the revision that has them, which the session sees to.
async fn batch(asked: Asked, body: Bytes) -> Response<ResponseBody> {
    let refused = admit_batch(&asked.server.features(), &asked, &body).err();
    if let Some(refusal) = refused {
        return answer::refused(&refusal, None);
    }
    legacy::post(asked, None, true, |connection| {
        connection.take(Frame::Message(&body));
    })
    .await
}

/// Whether none of the messages is modern. What is no batch, or too long a one, is the session's to refuse.
fn admit_batch(features: &Features, asked: &Asked, body: &[u8]) -> Result<(), Refusal> {
    let messages: Vec<&RawValue> = serde_json::from_slice(body).unwrap_or_default();
    for raw in messages.into_iter().take(features.limits.max_batch) {
        let mut params = RequestParams::UNREAD;
        if let Ok(message) = Envelope::parse_str(raw.get(), &mut params) {
            let headers = &asked.parts.headers;
            ladder::admit_batch(&Served::by(features), headers, [&message].into_iter())?;
        }
    }
    Ok(())
}

fn tool_call<'m, 'a>(message: &'m Message<'a>) -> Option<&'m RawRequest<'a, RequestParams<'a>>> {
    match message {
        Envelope::Request(request) if request.method == CallTool::NAME => Some(request),
        _ => None,
    }
}

fn opens_session(message: &Message<'_>) -> bool {
    matches!(message, Envelope::Request(request) if request.method == Initialize::NAME)
}

fn id_of<'m>(message: &'m Message<'_>) -> Option<&'m RequestId> {
    match message {
        Envelope::Request(request) => Some(&request.id),
        _ => None,
    }
}
