//! The access token of a request: whether it admits the request, and has the scopes that the message needs.

use std::sync::Arc;

use http::{StatusCode, request::Parts};
use oxmcp_auth::ScopeSet;
use oxmcp_json::Cursor;
use oxmcp_protocol::{
    Method,
    framing::after_byte_order_mark,
    internal::{Envelope, Params, RequestParams},
    lenient::mend_message,
    method::Listen,
};

use super::{
    access::Policy,
    run::{check_target, unreadable_array},
};
use crate::{
    error::Error,
    http::{
        protection::{Protection, check_scopes},
        server::response::{self, Refused},
    },
    server::{Features, needed_scopes},
    session::connection::Connection,
    transport::principal::Principal,
};

/// Admits a request that has an allowed host and origin, and a token that is accepted. Its extensions then contain the
/// [`Principal`].
///
/// # Errors
/// The response that refuses the request; or the metadata of the resource, if the request is for these.
pub(in crate::http::server) async fn admit(
    protection: &Protection,
    policy: &Policy,
    parts: &mut Parts,
) -> Result<(), Refused> {
    let checked = policy.check().and_then(|()| protection.check());
    checked.map_err(|error| {
        tracing::error!(%error, "the endpoint was put together wrongly");
        let why = Error::internal("the server was put together wrongly; its log says how");
        response::refuse(StatusCode::INTERNAL_SERVER_ERROR, None, &why)
    })?;
    let resource = protection.resource();
    if let Some(metadata) = resource.and_then(|it| it.metadata_response(parts)) {
        return Err(Box::new(metadata));
    }
    check_target(policy, parts)?;
    protection.admit(parts).await
}

/// A message that is about to be served, with the data that decides which items its caller may see.
pub(in crate::http::server) struct ScopeCheck<'a> {
    pub(in crate::http::server) protection: Option<&'a Protection>,
    pub(in crate::http::server) features: &'a Features,
    /// The caller that handlers see.
    pub(in crate::http::server) caller: Option<&'a Principal>,
    /// Makes a connection like the one on which the message will arrive.
    pub(in crate::http::server) connection: &'a dyn Fn() -> Option<Arc<Connection>>,
    /// Whether the message is served by modern rules.
    pub(in crate::http::server) is_modern: bool,
    pub(in crate::http::server) parts: &'a Parts,
}

impl ScopeCheck<'_> {
    /// Checks that the token of a request has the scopes that its message needs.
    ///
    /// # Errors
    /// The response that refuses the request.
    pub(in crate::http::server) fn check_scopes(
        &self,
        message: &Envelope<'_, RequestParams<'_>>,
    ) -> Result<(), Refused> {
        self.check(&self.needed_scopes(message))
    }

    /// Checks the scopes for a posted body: a message, or an array of messages, which is refused as a whole, with all scopes that
    /// it needs. A body that is no message needs no scopes, and is answered as such; but an array that cannot be parsed to its end
    /// is refused, because its needs are unknown. An array of more messages than a batch may hold needs no scopes, either: it is
    /// refused as a whole when it is taken.
    ///
    /// # Errors
    /// The response that refuses the request.
    pub(in crate::http::server) fn check_scopes_of_body(&self, body: &[u8]) -> Result<(), Refused> {
        // The session ignores the mark, too.
        let body = after_byte_order_mark(body).unwrap_or(body);
        let mut messages = vec![body];
        if body.trim_ascii_start().first() == Some(&b'[') {
            let connection = (self.connection)();
            let limit = connection.map_or(0, |it| it.limits.max_batch);
            messages.clear();
            let text = str::from_utf8(body).unwrap_or_default();
            let array = Cursor::new(text.trim_ascii_start()).items(|cursor| {
                let message = cursor.value()?;
                if messages.len() <= limit {
                    messages.push(message.get().as_bytes());
                }
                Ok(())
            });
            array.map_err(|_| unreadable_array())?;
            if messages.len() > limit {
                return Ok(());
            }
        }
        let mut needed = ScopeSet::new();
        for message in messages {
            let mut params = RequestParams::UNREAD;
            if let Ok(message) = Envelope::parse(message, &mut params) {
                needed = needed.union(&self.needed_scopes(&message));
            } else if let Some((mended, _)) = mend_message(message) {
                // The session reads what was meant, too.
                let mut params = RequestParams::UNREAD;
                if let Ok(message) = Envelope::parse(&mended, &mut params) {
                    needed = needed.union(&self.needed_scopes(&message));
                }
            }
        }
        self.check(&needed)
    }

    fn needed_scopes(&self, message: &Envelope<'_, RequestParams<'_>>) -> ScopeSet {
        // No legacy revision has this method. It names more items than any other request.
        if !self.is_modern && matches!(message, Envelope::Request(it) if it.method == Listen::NAME)
        {
            return ScopeSet::new();
        }
        needed_scopes(self.features, self.caller, self.connection, message)
    }

    fn check(&self, needed: &ScopeSet) -> Result<(), Refused> {
        if needed.is_empty() {
            return Ok(());
        }
        if let Some(protection) = self.protection {
            return protection.check_operation(self.parts, needed);
        }
        // A middleware in front of the endpoint may have authenticated the caller.
        let principal = self.parts.extensions.get::<Principal>();
        if principal.is_some_and(|it| it.granted_scopes().is_some()) {
            return check_scopes(principal, needed);
        }
        let why = Error::invalid_request(format!(
            "this needs the scopes {needed}, and the endpoint does not know those of its callers: demand tokens by \
             StreamableHttp::protect or authenticate, or let a middleware set Principal::scopes"
        ));
        Err(response::refuse(StatusCode::FORBIDDEN, None, &why))
    }
}
