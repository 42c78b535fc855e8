//! Failures of logins: what they mean for the next one, and words that say more.

use std::error::Error as StdError;

use oxmcp_auth::{AuthError, client::Client};

use crate::{error::Error, http::client::login::settings::Login};

/// The code of OAuth that a login failed with.
pub(super) fn oauth_error(error: &Error) -> Option<&str> {
    let mut source: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<AuthError>() {
            return error.oauth_error();
        }
        source = error.source();
    }
    None
}

/// Whether an authorization server does not know the client, or not any more.
pub(super) fn is_unknown_client(error: &Error) -> bool {
    matches!(
        oauth_error(error),
        Some("invalid_client" | "unauthorized_client")
    )
}

/// Whether a client that is registered anew may succeed where one that was registered before has failed: it is not known any
/// more, or was registered when fewer scopes were wanted.
pub(super) fn wants_another_client(error: &Error) -> bool {
    is_unknown_client(error) || oauth_error(error) == Some("invalid_scope")
}

/// The failure of a client. Where the user has configured it, it says what to do if the authorization server does not know it, or
/// does not give it these scopes.
pub(super) fn explain(login: &Login, error: Error, client: &Client) -> Error {
    if !login.is_configured(client) {
        return error;
    }
    let (problem, what_to_do) = if is_unknown_client(&error) {
        (
            "does not take the client",
            "Check its id, its secret or key, and what it is registered for",
        )
    } else if oauth_error(&error) == Some("invalid_scope") {
        (
            "does not give these scopes to the client",
            "Register it for them, or ask for others (Login::scopes)",
        )
    } else {
        return error;
    };
    let text = format!(
        "{}: the authorization server {problem} {:?}, which is configured. {what_to_do}",
        error.message(),
        client.id()
    );
    Error::failed_login(text, error)
}

/// A login that no request waits for any more.
pub(super) fn given_up() -> Error {
    let text = "the login was given up, since no request waited for it any more";
    Error::failed_login(text.to_owned(), Error::cancelled(text))
}

/// Whether a login was given up, which says nothing to a request that comes later.
pub(super) fn is_given_up(error: &Error) -> bool {
    let source = error.source();
    let source = source.and_then(|it| it.downcast_ref::<Error>());
    error.is_authorization() && source.is_some_and(Error::is_cancelled)
}

/// A login that took too long.
pub(super) fn nobody_came(within: std::time::Duration) -> Error {
    AuthError::interaction_required(format!(
        "nobody has logged in within {within:?}. If the page did not know the client, log out (Login::logout): the next login \
         registers another"
    ))
    .into()
}
