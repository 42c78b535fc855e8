//! What is posted to an endpoint.

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode, request::Parts};

use crate::{
    http::server::{
        ResponseBody, StreamableHttp, answer,
        endpoint::origin,
        exchange::Exchange,
        ladder::{self, Admitted},
        legacy,
    },
    jsonrpc::{Envelope, Params, RequestId},
    protocol::RequestParams,
    server::ServerPeer,
    session::Connection,
    transport::Frame,
};

/// Answers a POST.
pub(super) async fn post(
    endpoint: StreamableHttp,
    parts: Parts,
    body: Bytes,
) -> Response<ResponseBody> {
    if body.trim_ascii_start().first() == Some(&b'[') {
        return batch(endpoint, parts, body).await;
    }
    let mut params = RequestParams::UNREAD;
    let envelope = match Envelope::parse(&body, &mut params) {
        Ok(envelope) => envelope,
        Err(malformed) => {
            return answer::error(
                StatusCode::BAD_REQUEST,
                malformed.id.as_ref(),
                &malformed.error,
            );
        }
    };
    let server = match endpoint.server(&parts) {
        Ok(server) => server,
        Err(response) => return *response,
    };
    let features = server.features();
    match ladder::message(&features, &parts.headers, &envelope) {
        Err(refusal) => refusal.response(id_of(&envelope)),
        Ok(Admitted::Modern) => {
            let limits = features.limits.clone();
            drop(features);
            let peer = ServerPeer::stateless(server);
            let connection = Connection::undriven(Arc::clone(&peer) as _, limits, origin(parts));
            let is_request = matches!(envelope, Envelope::Request(_));
            connection.take_envelope(envelope);
            let exchange = Exchange::new(connection, peer, &endpoint.state);
            if !is_request {
                return answer::empty(StatusCode::ACCEPTED);
            }
            exchange.answer().await
        }
        Ok(Admitted::Legacy) => {
            drop(features);
            let opens = matches!(&envelope, Envelope::Request(it) if it.method == "initialize");
            let is_request = matches!(envelope, Envelope::Request(_));
            let id = id_of(&envelope).cloned();
            if opens && !parts.headers.contains_key(ladder::SESSION_ID) {
                return legacy::open(endpoint, server, parts, |connection| {
                    connection.take_envelope(envelope);
                })
                .await;
            }
            legacy::post(endpoint, parts, id, is_request, |connection| {
                connection.take_envelope(envelope);
            })
            .await
        }
    }
}

/// Batches belong to sessions of the revision that has them.
async fn batch(endpoint: StreamableHttp, parts: Parts, body: Bytes) -> Response<ResponseBody> {
    if let Err(refusal) = ladder::batch(&parts.headers, &body) {
        return refusal.response(None);
    }
    legacy::post(endpoint, parts, None, true, |connection| {
        connection.take(Frame::Message(&body));
    })
    .await
}

fn id_of<'a, P>(envelope: &'a Envelope<'_, P>) -> Option<&'a RequestId> {
    match envelope {
        Envelope::Request(request) => Some(&request.id),
        _ => None,
    }
}
