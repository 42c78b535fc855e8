//! Refusals, and the responses to them.

use http::{HeaderValue, StatusCode, header};

use crate::{
    challenge::Challenge,
    error::{AuthError, AuthErrorKind},
    exchange::{Body, Response},
    scope::ScopeSet,
};

/// The reason why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub(crate) Reason);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Missing,
    Malformed(AuthError),
    Invalid(AuthError),
    /// The DPoP proof is missing or not valid.
    Proof(AuthError),
    /// The DPoP proof needs this nonce.
    Nonce(String),
    /// All scopes that the operation needs.
    Scopes(ScopeSet),
    /// Tokens cannot be verified right now.
    Unavailable(AuthError),
}

impl From<AuthError> for Refusal {
    /// The token could not be verified right now, if the error says so; otherwise it is not valid.
    fn from(error: AuthError) -> Self {
        match error.kind() {
            AuthErrorKind::Unavailable => Self::unavailable(error),
            _ => Self::invalid(error),
        }
    }
}

impl Refusal {
    /// Creates the refusal of a request without a token.
    #[must_use]
    pub fn missing() -> Self {
        Self(Reason::Missing)
    }

    /// Creates the refusal of an invalid token. The message of the error is sent to the client.
    #[must_use]
    pub fn invalid(error: AuthError) -> Self {
        Self(Reason::Invalid(error))
    }

    /// Creates the refusal of a valid token that lacks scopes for an operation, which needs all of these.
    #[must_use]
    pub fn insufficient_scope(needed: ScopeSet) -> Self {
        Self(Reason::Scopes(needed))
    }

    /// Creates the refusal of a token that cannot be verified right now. The message of the error is for the log, and is not sent.
    #[must_use]
    pub fn unavailable(error: AuthError) -> Self {
        Self(Reason::Unavailable(error))
    }

    pub(crate) fn malformed(sentence: &str) -> Self {
        Self(Reason::Malformed(AuthError::new(
            AuthErrorKind::Malformed,
            sentence,
        )))
    }

    pub(crate) fn is_unavailable(&self) -> bool {
        matches!(self.0, Reason::Unavailable(_))
    }

    /// Returns the status of the response: 401 if the token is missing or invalid, 403 if it lacks scopes, 400 if the request
    /// is malformed, 503 if tokens cannot be verified right now.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self.0 {
            Reason::Missing | Reason::Invalid(_) | Reason::Proof(_) | Reason::Nonce(_) => {
                StatusCode::UNAUTHORIZED
            }
            Reason::Malformed(_) => StatusCode::BAD_REQUEST,
            Reason::Scopes(_) => StatusCode::FORBIDDEN,
            Reason::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Returns the error code for challenges; `None` if the request has no token, since the client has made no mistake yet
    /// ([RFC 6750, section 3.1](https://www.rfc-editor.org/rfc/rfc6750#section-3.1)).
    #[must_use]
    pub fn code(&self) -> Option<&'static str> {
        match self.0 {
            Reason::Missing => None,
            Reason::Malformed(_) => Some("invalid_request"),
            Reason::Invalid(_) => Some("invalid_token"),
            Reason::Proof(_) => Some("invalid_dpop_proof"),
            Reason::Nonce(_) => Some("use_dpop_nonce"),
            Reason::Scopes(_) => Some("insufficient_scope"),
            Reason::Unavailable(_) => Some("temporarily_unavailable"),
        }
    }

    /// Returns the description for the client. It says only what is wrong with the token, and nothing about the internals of the
    /// server.
    #[must_use]
    pub fn description(&self) -> String {
        match &self.0 {
            Reason::Missing => {
                "missing access token; send `Authorization: Bearer <token>`".to_owned()
            }
            Reason::Malformed(error) | Reason::Invalid(error) | Reason::Proof(error) => {
                error.message().to_owned()
            }
            Reason::Nonce(_) => "DPoP proof needs the nonce of the header `DPoP-Nonce`".to_owned(),
            Reason::Scopes(needed) => format!(
                "insufficient scope: this needs {needed}; use an access token that grants it"
            ),
            Reason::Unavailable(_) => {
                "access tokens cannot be verified right now; try again later".to_owned()
            }
        }
    }

    /// Returns the error, for the log of the server.
    #[must_use]
    pub fn error(&self) -> Option<&AuthError> {
        match &self.0 {
            Reason::Malformed(error)
            | Reason::Invalid(error)
            | Reason::Proof(error)
            | Reason::Unavailable(error) => Some(error),
            Reason::Missing | Reason::Nonce(_) | Reason::Scopes(_) => None,
        }
    }

    /// Returns the scopes that the operation needs, if the token lacks scopes.
    #[must_use]
    pub fn needed_scopes(&self) -> Option<&ScopeSet> {
        match &self.0 {
            Reason::Scopes(scopes) => Some(scopes),
            _ => None,
        }
    }

    /// Returns the nonce for the header `DPoP-Nonce`.
    #[must_use]
    pub fn nonce(&self) -> Option<&str> {
        match &self.0 {
            Reason::Nonce(nonce) => Some(nonce),
            _ => None,
        }
    }

    /// Returns the response with these challenges. Its body is an OAuth error.
    #[must_use]
    pub fn response(&self, challenges: &[Challenge]) -> Response {
        let code = self.code().unwrap_or("unauthorized");
        let body = serde_json::json!({"error": code, "error_description": self.description()});
        let mut response = Response::new(Body::from(body.to_string()));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        for challenge in challenges {
            headers.append(header::WWW_AUTHENTICATE, challenge.to_header_value());
        }
        if self.is_unavailable() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
        }
        response
    }
}
