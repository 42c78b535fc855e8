//! The access token of a request: whether it lets the request in, and is enough for what its message names.

use std::sync::Arc;

use http::{StatusCode, request::Parts};
use oxmcp_auth::ScopeSet;
use oxmcp_json::Cursor;
use oxmcp_protocol::{
    Method,
    internal::{Envelope, Params, RequestParams},
    method::Listen,
};

use super::{
    access::Policy,
    run::{check_access, unreadable_array},
};
use crate::{
    error::Error,
    http::{
        protection::ProtectedResource,
        server::response::{self, Refused},
    },
    server::{Features, needed_scopes},
    session::connection::Connection,
    transport::principal::Principal,
};

/// Lets a request in that comes from where it may, and bears a token that the resource takes. Its extensions say then who has
/// sent it.
///
/// # Errors
/// How it is refused; or the metadata of the resource, if it asks for these.
pub(in crate::http::server) async fn admit(
    resource: &ProtectedResource,
    policy: &Policy,
    parts: &mut Parts,
) -> Result<(), Refused> {
    let checked = policy.check().and_then(|()| resource.guard());
    let guard = checked.map_err(|error| {
        tracing::error!(%error, "the endpoint was put together wrongly");
        let why = Error::internal("the server was put together wrongly; its log says how");
        response::refuse(StatusCode::INTERNAL_SERVER_ERROR, None, &why)
    })?;
    if let Some(metadata) = resource.metadata_response(parts) {
        return Err(Box::new(metadata));
    }
    check_access(policy, parts)?;
    guard.admit(parts).await
}

/// A message that is to be served, as far as it decides what its caller sees.
pub(in crate::http::server) struct Serving<'a> {
    pub(in crate::http::server) resource: Option<&'a ProtectedResource>,
    pub(in crate::http::server) features: &'a Features,
    /// The caller that handlers see.
    pub(in crate::http::server) caller: Option<&'a Principal>,
    /// A connection like the one that the message is to arrive on.
    pub(in crate::http::server) connection: &'a dyn Fn() -> Option<Arc<Connection>>,
    /// Whether it is served by modern rules.
    pub(in crate::http::server) is_modern: bool,
    pub(in crate::http::server) parts: &'a Parts,
}

impl Serving<'_> {
    /// Whether the token of a request is enough for its message.
    ///
    /// # Errors
    /// How it is refused.
    pub(in crate::http::server) fn check_scopes(
        &self,
        message: &Envelope<'_, RequestParams<'_>>,
    ) -> Result<(), Refused> {
        self.check(&self.needed_scopes(message))
    }

    /// The same for what was posted as it came: a message, or an array of them, which is refused whole, with all that it needs. What
    /// is no message needs nothing, and is answered as such; but of an array that cannot be read to its end nobody knows what it
    /// needs. So does an array of more messages than a batch may hold: it is refused whole when it is taken.
    ///
    /// # Errors
    /// How it is refused.
    pub(in crate::http::server) fn check_scopes_of_body(&self, body: &[u8]) -> Result<(), Refused> {
        let text = str::from_utf8(body).unwrap_or_default();
        let mut messages = vec![text];
        if body.trim_ascii_start().first() == Some(&b'[') {
            let connection = (self.connection)();
            let limit = connection.map_or(0, |it| it.limits.max_batch);
            messages.clear();
            let array = Cursor::new(text.trim_ascii_start()).items(|cursor| {
                let message = cursor.value()?;
                if messages.len() <= limit {
                    messages.push(message.get());
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
            if let Ok(message) = Envelope::parse_str(message, &mut params) {
                needed = needed.union(&self.needed_scopes(&message));
            }
        }
        self.check(&needed)
    }

    fn needed_scopes(&self, message: &Envelope<'_, RequestParams<'_>>) -> ScopeSet {
        // No legacy revision has it. It names more than any other request.
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
        let guard = self.resource.and_then(|resource| resource.guard().ok());
        let guard = guard.ok_or_else(|| {
            let why = Error::invalid_request(format!(
                "this needs the scopes {needed}, and the endpoint takes no access tokens (StreamableHttp::protect)"
            ));
            response::refuse(StatusCode::FORBIDDEN, None, &why)
        })?;
        guard.check_operation(self.parts, needed)
    }
}
