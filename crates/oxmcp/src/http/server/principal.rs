//! Who makes a request.

use std::{fmt, sync::Arc};

/// Who makes a request: whoever the authentication in front of the endpoint has found out.
///
/// Put one into the extensions of each request, with a middleware in front of the endpoint. Sessions are then bound to it:
/// whoever else names the id of a session gets 404, as if there were none; and no principal has more of them than
/// [`Limits::max_http_sessions_each`](crate::Limits::max_http_sessions_each). Without it all requests come from nobody in
/// particular, and a session's id is all that there is to know.
///
/// It is an opaque name, equal for the same caller in all requests and different for different ones. Where callers are
/// told apart by tokens, that is the issuer with the subject, and the client where clients should not share sessions;
/// never the token, which changes.
///
/// ```
/// use oxmcp::http::Principal;
///
/// # let mut request = http::Request::new(());
/// let subject = "https://login.example.com|alice"; // as the token says, once its signature was checked
/// request.extensions_mut().insert(Principal::new(subject));
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Principal(Arc<str>);

impl Principal {
    /// The principal of this name.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    pub(super) fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Names of people do not belong in logs.
impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Principal(..)")
    }
}
