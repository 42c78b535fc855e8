//! Failures of logins: their meaning for the next login, and error messages with advice.

use std::error::Error as StdError;

use oxmcp_auth::{AuthError, AuthErrorKind, client::Client};

use crate::{error::Error, http::client::login::settings::Login};

/// The OAuth error code of a failed login.
pub(crate) fn oauth_error(error: &Error) -> Option<&str> {
    auth_error(error)?.oauth_error()
}

/// Whether an authorization server has refused a request, or sent an invalid response to it: the same request would fail again.
pub(crate) fn is_refused(error: &Error) -> bool {
    auth_error(error)
        .is_some_and(|it| matches!(it.kind(), AuthErrorKind::Refused | AuthErrorKind::Malformed))
}

fn auth_error(error: &Error) -> Option<&AuthError> {
    let mut source: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<AuthError>() {
            return Some(error);
        }
        source = error.source();
    }
    None
}

/// Whether an authorization server does not know the client, or no longer knows it.
pub(crate) fn is_unknown_client(error: &Error) -> bool {
    matches!(
        oauth_error(error),
        Some("invalid_client" | "unauthorized_client")
    )
}

/// Whether a new registration may succeed after a client that was registered before has failed: the client is no longer known,
/// or was registered for fewer scopes.
pub(crate) fn wants_another_client(error: &Error) -> bool {
    is_unknown_client(error) || oauth_error(error) == Some("invalid_scope")
}

/// The failure of a client. If the user has configured the client, the error tells what to do if the authorization server does
/// not know it, or does not give it these scopes.
pub(crate) fn explain(login: &Login, error: Error, client: &Client) -> Error {
    if !login.is_configured(client) {
        return error;
    }
    let (problem, what_to_do) = if is_unknown_client(&error) {
        (
            "rejected the configured client",
            "check its ID, its secret or key, and its registration",
        )
    } else if oauth_error(&error) == Some("invalid_scope") {
        (
            "does not grant these scopes to the configured client",
            "register it for them, or request others (`Login::scopes`)",
        )
    } else {
        return error;
    };
    let text = format!(
        "{}: the authorization server {problem} {:?}; {what_to_do}",
        error.message(),
        client.id()
    );
    Error::failed_login(text, error)
}

/// The error of a login that no request waits for.
pub(crate) fn given_up() -> Error {
    let text = "the login was cancelled: no request is waiting for it";
    Error::failed_login(text.to_owned(), Error::cancelled(text))
}

/// Whether a login was cancelled, which does not concern later requests.
pub(crate) fn is_given_up(error: &Error) -> bool {
    let source = error.source();
    let source = source.and_then(|it| it.downcast_ref::<Error>());
    error.is_authorization() && source.is_some_and(Error::is_cancelled)
}

/// The error of a login that took too long.
pub(crate) fn nobody_came(within: std::time::Duration) -> Error {
    AuthError::interaction_required(format!(
        "login timed out after {within:?}; if the login page did not know the client, call `Login::logout` to register another"
    ))
    .into()
}
