//! From a request that has arrived to what serves it.

use std::sync::Arc;

use crate::{
    Error, ErrorCode,
    jsonrpc::Params,
    protocol::{Method, RequestParams, method},
    server::{features::Features, methods, peer::ServerPeer, span},
    session::{
        Arrival, Body, Connection, ContextParts, Peer, RequestContext, Work, guarded,
        middleware::Request, respond_now, serve,
    },
};

impl ServerPeer {
    /// Answers what no handler was asked.
    fn refuse(&self, context: &ContextParts, error: Error) {
        // The first is the one that answers: there is one request where this matters.
        let _ = self.refused.set(error.code());
        respond_now(context, Err(error));
    }

    /// Finds out whose request it is, and serves it.
    pub(super) fn begin(&self, connection: &Arc<Connection>, arrival: Arrival<'_>) {
        let Arrival {
            id,
            method,
            params,
            batch,
        } = arrival;
        let features = self.server.features();
        let params = params.unwrap_or(&RequestParams::UNREAD);
        let identified = params.check().map_err(Error::from).and_then(|()| {
            let peer = self.callers.identify(
                self.server.known_callers(),
                &features,
                method,
                &params.meta,
            )?;
            Ok((peer, params.meta.log_level()?))
        });
        let (peer, log_level) = match identified {
            Ok(identified) => identified,
            Err(error) => {
                // Only a request that names a revision is refused for it, and who does that knows the modern errors.
                let stranger = match error.code() {
                    ErrorCode::UNSUPPORTED_PROTOCOL_VERSION => Peer::modern_stranger(),
                    _ => Peer::stranger(),
                };
                let mut context = ContextParts::new(connection, Some(id), Arc::new(stranger));
                context.batch = batch;
                return self.refuse(&context, error);
            }
        };
        let mut context = ContextParts::new(connection, Some(id), peer);
        context.batch = batch;
        context.log_level = log_level;
        context.progress_token = params.meta.progress_token();
        context.meta = params.meta.raw().map(Into::into);
        let context = Arc::new(context);
        connection.note_wish(&context);
        self.dispatch(&features, context, method, params);
    }

    fn dispatch(
        &self,
        features: &Features,
        context: Arc<ContextParts>,
        method: &str,
        params: &RequestParams<'_>,
    ) {
        let cx = RequestContext::new(Arc::clone(&context));
        if let Some(next) = features.incoming.next().cloned() {
            let request = Request::incoming(cx, method, Some(params.whole));
            // What a client sends next relies on the session that it opens, or on the level that it sets.
            let settles = matches!(method, method::Initialize::NAME | method::SetLevel::NAME);
            let hold = settles.then(|| context.connection.hold());
            let future = Box::pin(async move {
                let response = next.run(request).await;
                drop(hold);
                response.map(|response| Body::Json(response.into_text()))
            });
            let work = Work {
                future,
                pace: (!settles).then(|| Arc::clone(self.server.pace())),
                begun: None,
            };
            let work = span::traced(work, &context, method, params);
            return serve(context, work);
        }
        match guarded(|| methods::serve(self, features, cx, method, params)) {
            Ok(methods::Served::Now(body)) => respond_now(&context, Ok(body)),
            Ok(methods::Served::Later(work)) => {
                let work = span::traced(work, &context, method, params);
                serve(context, work);
            }
            Err(error) => self.refuse(&context, error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, Server, jsonrpc::RequestId};

    #[tokio::test]
    async fn two_that_were_admitted_at_once_do_not_share_an_id() {
        let peer = ServerPeer::new(Server::new("s", "1"));
        let connection = Connection::new(peer, Limits::default());
        let id = RequestId::from(1);
        let context = || {
            let peer = Arc::new(Peer::stranger());
            Arc::new(ContextParts::new(&connection, Some(id.clone()), peer))
        };
        let in_flight = connection.in_flight();
        assert!(in_flight.admit(&id, "x").is_ok() && in_flight.admit(&id, "x").is_ok());
        assert!(in_flight.enter(&id, &context()).is_ok());
        assert!(in_flight.enter(&id, &context()).is_err());
        assert!(in_flight.admit(&id, "x").is_err());
    }
}
