//! What is posted to an endpoint.

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode};

use crate::{
    http::server::{
        ResponseBody, answer,
        exchange::Exchange,
        ladder::{self, Admitted, Refusal},
        legacy::{self, Posted},
        respond::{Asked, origin},
        restore,
    },
    jsonrpc::{Envelope, Params, RequestId},
    protocol::{Method, RequestParams, method::Initialize},
    server::ServerPeer,
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
            return Refusal::malformed(&malformed).response(malformed.id.as_ref());
        }
    };
    let features = asked.server.features().clone();
    let id = id_of(&message).cloned();
    let admitted = ladder::message(&features, &asked.parts.headers, &message);
    match admitted {
        Err(refusal) => refusal.response(id.as_ref()),
        Ok(Admitted::Modern(_)) => modern(asked, message).await,
        Ok(Admitted::Legacy) => {
            let (method, params) = match &message {
                Envelope::Request(it) => (&*it.method, it.params),
                Envelope::Notification(it) => (&*it.method, it.params),
                Envelope::Response(_) => ("", None),
            };
            let opens = !asked.names_session() && method == Initialize::NAME;
            let posted = Posted {
                is_answered: id.is_some(),
                changes_session: restore::changes(method),
            };
            let params = params.map_or("", |it| it.whole.get());
            let take = |connection: &Arc<Connection>| connection.take_envelope(message);
            if opens {
                return legacy::open(asked, params, take).await;
            }
            legacy::post(asked, id, posted, take).await
        }
    }
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
    let connection = Connection::of(Arc::clone(&peer) as _, limits, origin(parts));
    connection.take_envelope(message);
    let exchange = Exchange::new(connection, peer, &endpoint.state);
    if !is_request {
        return answer::empty(StatusCode::ACCEPTED);
    }
    exchange.answer().await
}

/// Batches belong to sessions of the revision that has them, which the session sees to.
async fn batch(asked: Asked, body: Bytes) -> Response<ResponseBody> {
    if let Err(refusal) = ladder::batch(&asked.parts.headers, &body) {
        return refusal.response(None);
    }
    let posted = Posted {
        is_answered: true,
        changes_session: true,
    };
    legacy::post(asked, None, posted, |connection| {
        connection.take(Frame::Message(&body));
    })
    .await
}

fn id_of<'m>(message: &'m Message<'_>) -> Option<&'m RequestId> {
    match message {
        Envelope::Request(request) => Some(&request.id),
        _ => None,
    }
}
