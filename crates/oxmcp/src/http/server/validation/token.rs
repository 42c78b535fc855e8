//! The access token of a request: whether it is valid, and has the scopes that the message needs.

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

/// Admits a request with an allowed host and origin and a valid token, and stores the [`Principal`] in its extensions.
///
/// # Errors
/// The response that rejects the request, or the metadata of the resource, if that was requested.
pub(crate) async fn admit(
    protection: &Protection,
    policy: &Policy,
    parts: &mut Parts,
) -> Result<(), Refused> {
    let checked = policy.check().and_then(|()| protection.check());
    checked.map_err(|error| response::misconfigured(&error))?;
    let resource = protection.resource();
    if let Some(metadata) = resource.and_then(|it| it.metadata_response(parts)) {
        return Err(Box::new(metadata));
    }
    check_target(policy, parts)?;
    protection.admit(parts).await
}

/// The context for checking the scopes of a message: what decides which items its caller may see.
pub(crate) struct ScopeCheck<'a> {
    pub(crate) protection: Option<&'a Protection>,
    pub(crate) features: &'a Features,
    /// The caller that handlers see.
    pub(crate) caller: Option<&'a Principal>,
    /// Makes a connection like the one on which the message will arrive.
    pub(crate) connection: &'a dyn Fn() -> Option<Arc<Connection>>,
    /// Whether modern rules apply to the message.
    pub(crate) is_modern: bool,
    pub(crate) parts: &'a Parts,
}

impl ScopeCheck<'_> {
    /// Checks that the token of a request has the scopes that its message needs.
    ///
    /// # Errors
    /// The response that refuses the request.
    pub(crate) fn check_scopes(
        &self,
        message: &Envelope<'_, RequestParams<'_>>,
    ) -> Result<(), Refused> {
        self.check(&self.needed_scopes(message))
    }

    /// Checks the scopes for a posted body: a message, or an array of messages, which is rejected as a whole and needs the scopes
    /// of all its messages. A body that is not a message needs no scopes, and is rejected later. An array that cannot be parsed to
    /// its end is rejected here, because its scopes are unknown. An array that exceeds the batch limit needs no scopes either: it
    /// is rejected as a whole when it is received.
    ///
    /// # Errors
    /// The response that refuses the request.
    pub(crate) fn check_scopes_of_body(&self, body: &[u8]) -> Result<(), Refused> {
        // The session also ignores the mark.
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
                // The session also reads the repaired message.
                let mut params = RequestParams::UNREAD;
                if let Ok(message) = Envelope::parse(&mended, &mut params) {
                    needed = needed.union(&self.needed_scopes(&message));
                }
            }
        }
        self.check(&needed)
    }

    fn needed_scopes(&self, message: &Envelope<'_, RequestParams<'_>>) -> ScopeSet {
        // Legacy revisions do not have this method, which names more items than any other request.
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
        tracing::warn!(
            scopes = %needed,
            "rejected a request that needs scopes: the endpoint checks no access tokens; use `protect` or `authenticate`, \
             or set `Principal::scopes` in a middleware"
        );
        let why = Error::invalid_request(format!(
            "insufficient scope: this needs {needed}, and the server checks no access tokens"
        ));
        Err(response::refuse(StatusCode::FORBIDDEN, None, &why))
    }
}
