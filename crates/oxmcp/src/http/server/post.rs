//! What is posted to an endpoint.

use std::sync::Arc;

use http::StatusCode;

use crate::{
    Error,
    http::server::{
        answer::{self, Answer},
        exchange::Exchange,
        ladder::{self, Admitted, Refusal},
        legacy::{self, Posted},
        respond::{Asked, lasting_origin, origin},
        restore,
    },
    jsonrpc::{Envelope, Params, RequestId},
    protocol::{
        Method, RequestParams,
        method::{Initialize, Listen},
    },
    server::ServerPeer,
    session::Connection,
    transport::Frame,
};

type Message<'a> = Envelope<'a, RequestParams<'a>>;

/// Answers a POST.
pub(super) fn take(asked: Asked, body: &[u8]) -> Answer {
    if body.trim_ascii_start().first() == Some(&b'[') {
        return batch(asked, body);
    }
    let mut params = RequestParams::UNREAD;
    let message = match Envelope::parse(body, &mut params) {
        Ok(message) => message,
        Err(malformed) => {
            let refusal = Refusal::malformed(&malformed);
            return Answer::Now(refusal.response(malformed.id.as_ref()));
        }
    };
    let features = asked.server.features().clone();
    let id = id_of(&message).cloned();
    let climbed = match ladder::message(&features, &asked.parts.headers, &message) {
        Ok(climbed) => climbed,
        Err(refusal) => return Answer::Now(refusal.response(id.as_ref())),
    };
    match climbed.admitted {
        Admitted::Modern(_) => modern(asked, message, climbed.doubt),
        Admitted::Legacy => {
            let (method, params) = match &message {
                Envelope::Request(it) => (&*it.method, it.params),
                Envelope::Notification(it) => (&*it.method, it.params),
                Envelope::Response(_) => ("", None),
            };
            // Without an id, it would never be answered.
            let opens = !asked.names_session && id.is_some() && method == Initialize::NAME;
            let posted = Posted {
                is_answered: id.is_some(),
                changes_session: restore::changes(method),
            };
            let params = params.map_or("", |it| it.whole.get());
            let take = |connection: &Arc<Connection>| connection.take_envelope(message);
            if opens {
                return legacy::open(asked, params, take);
            }
            legacy::post(asked, id.as_ref(), posted, take)
        }
    }
}

/// Answers a modern request on its own. A modern client knows of no session, whatever it may seem to name.
fn modern(asked: Asked, message: Message<'_>, doubt: Option<Error>) -> Answer {
    let Asked {
        endpoint,
        mut server,
        session,
        parts,
        ..
    } = asked;
    if session.is_some() {
        server = match endpoint.choose(&parts) {
            Ok(server) => server,
            Err(response) => return Answer::Now(*response),
        };
    }
    let is_request = matches!(message, Envelope::Request(_));
    let lasts = matches!(&message, Envelope::Request(it) if it.method == Listen::NAME);
    let origin = if lasts {
        lasting_origin(&parts)
    } else {
        origin(parts)
    };
    let limits = Arc::clone(&server.features().limits);
    let peer = ServerPeer::stateless(server, doubt);
    let connection = Connection::of(Arc::clone(&peer) as _, limits, origin);
    connection.take_envelope(message);
    let mut exchange = Exchange::new(connection, peer, endpoint);
    if !is_request {
        return Answer::Now(answer::empty(StatusCode::ACCEPTED));
    }
    match exchange.at_once() {
        Some(plain) => Answer::Plain(plain),
        None => Answer::later(exchange.answer()),
    }
}

/// Batches belong to sessions of the revision that has them, which the session sees to.
fn batch(asked: Asked, body: &[u8]) -> Answer {
    if let Err(refusal) = ladder::batch(&asked.parts.headers, body) {
        return Answer::Now(refusal.response(None));
    }
    let posted = Posted {
        is_answered: true,
        changes_session: true,
    };
    legacy::post(asked, None, posted, |connection| {
        connection.take(Frame::Message(body));
    })
}

fn id_of<'m>(message: &'m Message<'_>) -> Option<&'m RequestId> {
    match message {
        Envelope::Request(request) => Some(&request.id),
        _ => None,
    }
}
