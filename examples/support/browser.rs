//! A simulated browser, whose user agrees to everything, and a login with it.

use axum::{
    body::Bytes,
    http::{Request, header},
};
use oxmcp::{
    Error,
    http::{DefaultClient, HttpClient, Login},
};

use crate::AnyError;

/// Visits a page as a user of the development issuer, and follows redirects. Returns the URL of the last page, or the first URL
/// that begins with `until`, which is not visited.
///
/// # Errors
/// If a page cannot be visited.
pub async fn browse(url: &str, user: &str, until: &str) -> Result<String, AnyError> {
    let client = DefaultClient::new();
    let mut url = url.to_owned();
    while !url.starts_with(until) {
        let request = Request::get(&url).header(header::COOKIE, format!("user={user}"));
        let response = client.send(request.body(Bytes::new())?).await?;
        match response.headers().get(header::LOCATION) {
            Some(to) => url = absolute(&url, to.to_str()?),
            None => break,
        }
    }
    Ok(url)
}

/// Returns a login at the development issuer that needs no browser.
pub fn simulated_login(user: &'static str) -> Login {
    let redirect_uri = "http://127.0.0.1:4711/callback";
    Login::with_redirect(redirect_uri, move |page| async move {
        let answer = browse(&page, user, redirect_uri).await;
        answer.map_err(|error| Error::network(error.to_string()))
    })
}

/// The absolute URL of a redirect, which may be only a path.
fn absolute(page: &str, to: &str) -> String {
    let origin: Vec<_> = page.split('/').take(3).collect();
    match to.starts_with('/') {
        true => format!("{}{to}", origin.join("/")),
        false => to.to_owned(),
    }
}
