//! Error of a step of authorization.

use std::{error::Error, fmt};

/// Result of a step of authorization.
pub(crate) type Result<T, E = AuthError> = std::result::Result<T, E>;

/// Kind of an [`AuthError`]: who can mend it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AuthErrorKind {
    /// What this program was configured with cannot be used.
    Configuration,
    /// A peer sent what cannot be read.
    Malformed,
    /// A peer sent more than the bounds of this crate.
    Limit,
    /// What a peer sent can be read, but must not be trusted: another issuer, another resource, an address that must not
    /// be asked, an answer to another request.
    Untrusted,
    /// A peer said no. [`AuthError::oauth_error`] is its code, where it gave one.
    Refused,
    /// A peer cannot answer now: its own error, or too many requests. What it was asked may be asked again later.
    Unavailable,
    /// What is needed, the peer does not offer.
    Unsupported,
    /// A token or proof is not valid: forged, expired, for another server, or of another kind.
    InvalidToken,
    /// A person has to log in, or to agree, and nobody can be asked.
    InteractionRequired,
}

/// Reason why a step of authorization failed. The sentence says what is wrong and what to do; it never holds a token, a
/// code or a secret.
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

    /// A person has to log in, or to agree, and nobody can be asked: for logins of one's own.
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

    /// A refusal with the code that the peer gave, such as `invalid_grant`.
    pub(crate) fn refused(message: impl Into<String>, oauth_error: Option<&str>) -> Self {
        Self {
            oauth_error: oauth_error.map(str::to_owned),
            ..Self::new(AuthErrorKind::Refused, message)
        }
    }

    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::new(AuthErrorKind::Unsupported, message)
    }

    /// Something cannot be found out for now: for verifiers of one's own.
    #[must_use]
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(AuthErrorKind::Unavailable, message)
    }

    /// A token or proof is not valid: for verifiers of one's own. The sentence is sent to the client.
    #[must_use]
    pub fn invalid_token(message: impl Into<String>) -> Self {
        Self::new(AuthErrorKind::InvalidToken, message)
    }

    /// The same error, with the URL or the issuer whose answer it is about.
    pub(crate) fn at(mut self, place: &str) -> Self {
        self.message = format!("{place:?}: {}", self.message);
        self
    }

    /// Who can mend it.
    #[must_use]
    pub fn kind(&self) -> AuthErrorKind {
        self.kind
    }

    /// The sentence that says what is wrong, and what to do.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The error code of OAuth that the peer answered with, such as `invalid_grant`
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
