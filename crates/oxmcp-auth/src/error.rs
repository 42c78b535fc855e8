//! Errors of authorization steps.

use std::{error::Error, fmt};

/// The result of an authorization step.
pub(crate) type Result<T, E = AuthError> = std::result::Result<T, E>;

/// The kind of an [`AuthError`], by the party that can fix it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AuthErrorKind {
    /// The configuration of this program is invalid.
    Configuration,
    /// A peer sent data that cannot be parsed.
    Malformed,
    /// A peer sent more data than the bounds of this crate allow.
    Limit,
    /// The data that a peer sent can be parsed, but must not be trusted: it is of another issuer or resource, names a URL to
    /// which no request may be sent, or is the response to another request.
    Untrusted,
    /// A peer refused the request. [`AuthError::oauth_error`] is its error code, if it sent one.
    Refused,
    /// A peer cannot answer now, because it failed or gets too many requests. The request may be sent again later.
    Unavailable,
    /// The peer does not support a feature that is needed.
    Unsupported,
    /// A token or proof is not valid: forged, expired, for another server, or of another kind.
    InvalidToken,
    /// A user must log in or consent, but there is no user to ask.
    InteractionRequired,
}

/// An authorization step that failed. The message says what is wrong and what to do; it never contains a token, a code or a
/// secret.
///
/// ```
/// use oxmcp_auth::{AuthErrorKind, UrlRules};
///
/// let error = UrlRules::https().check("http://auth.example.com", "issuer").unwrap_err();
/// assert_eq!(error.kind(), AuthErrorKind::Untrusted);
/// assert!(error.message().contains("must be https"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthError {
    kind: AuthErrorKind,
    message: String,
    oauth_error: Option<String>,
}

impl AuthError {
    pub(crate) fn new(kind: AuthErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            oauth_error: None,
        }
    }

    pub(crate) fn configuration(message: impl Into<String>) -> Self {
        Self::new(AuthErrorKind::Configuration, message)
    }

    /// Creates the error of a custom login that needs a user, if there is no user to ask.
    #[must_use]
    pub fn interaction_required(message: impl Into<String>) -> Self {
        Self::new(AuthErrorKind::InteractionRequired, message)
    }

    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::new(AuthErrorKind::Malformed, message)
    }

    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self::new(AuthErrorKind::Limit, message)
    }

    pub(crate) fn untrusted(message: impl Into<String>) -> Self {
        Self::new(AuthErrorKind::Untrusted, message)
    }

    /// A refusal with the error code that the peer sent, such as `invalid_grant`.
    pub(crate) fn refused(message: impl Into<String>, oauth_error: Option<&str>) -> Self {
        Self {
            oauth_error: oauth_error.map(str::to_owned),
            ..Self::new(AuthErrorKind::Refused, message)
        }
    }

    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::new(AuthErrorKind::Unsupported, message)
    }

    /// Creates the error of a custom verifier that cannot verify tokens right now.
    #[must_use]
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(AuthErrorKind::Unavailable, message)
    }

    /// Creates the error of a custom verifier for an invalid token or proof. The message is sent to the client.
    #[must_use]
    pub fn invalid_token(message: impl Into<String>) -> Self {
        Self::new(AuthErrorKind::InvalidToken, message)
    }

    /// Prefixes the message with the URL or issuer whose response caused the error.
    pub(crate) fn at(mut self, place: &str) -> Self {
        self.message = format!("{place:?}: {}", self.message);
        self
    }

    /// Returns the kind of the error, by the party that can fix it.
    #[must_use]
    pub fn kind(&self) -> AuthErrorKind {
        self.kind
    }

    /// Returns the message, which says what is wrong and what to do.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the OAuth error code in the response of the peer, such as `invalid_grant`
    /// ([RFC 6749, section 5.2](https://www.rfc-editor.org/rfc/rfc6749#section-5.2)).
    #[must_use]
    pub fn oauth_error(&self) -> Option<&str> {
        self.oauth_error.as_deref()
    }
}

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for AuthError {}
