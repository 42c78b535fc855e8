//! Revocation of a token, when a user logs out.

use http::{HeaderMap, StatusCode};

use super::{
    authentication::{Form, authenticate},
    conversation::Conversation,
    identity::Client,
    oauth_error::{self, SentSecrets},
    token_request::post_form,
    tokens::Tokens,
};
use crate::{
    error::Result,
    exchange::{Request, Response},
    metadata::authorization_server::AuthorizationServerMetadata,
    secret::Secret,
    time::UnixTime,
};

/// The revocation of a login's tokens ([RFC 7009](https://www.rfc-editor.org/rfc/rfc7009)): of the refresh token, with which
/// the server revokes the others, or of the access token if there is no refresh token.
#[derive(Debug)]
pub struct Revocation {
    server: AuthorizationServerMetadata,
    endpoint: String,
    client: Client,
    token: Secret,
    hint: &'static str,
    /// The secrets of the request that was sent.
    sent: SentSecrets,
}

impl Revocation {
    /// Creates the revocation of tokens, if the server offers it.
    #[must_use]
    pub fn new(
        server: &AuthorizationServerMetadata,
        client: &Client,
        tokens: &Tokens,
    ) -> Option<Self> {
        let (token, hint) = match &tokens.refresh_token {
            Some(token) => (token, "refresh_token"),
            None => (&tokens.access_token, "access_token"),
        };
        Some(Self {
            endpoint: server.revocation_endpoint.clone()?,
            server: server.clone(),
            client: client.clone(),
            token: token.clone(),
            hint,
            sent: SentSecrets::default(),
        })
    }
}

impl Conversation for Revocation {
    type Output = ();

    fn request(&mut self, now: UnixTime) -> Result<Request> {
        let mut form: Form = vec![
            ("token", self.token.clone()),
            ("token_type_hint", self.hint.into()),
        ];
        let mut headers = HeaderMap::new();
        authenticate(&self.client, &self.server, now, &mut headers, &mut form)?;
        self.sent = SentSecrets::of(Some(&self.client), &form, &headers);
        post_form(&self.endpoint, &form, headers)
    }

    fn receive(&mut self, response: &Response, _now: UnixTime) -> Result<Option<()>> {
        if response.status() == StatusCode::OK {
            return Ok(Some(()));
        }
        let asked = format!("token revocation at {:?}", self.endpoint);
        Err(oauth_error::of(response, &asked, &self.sent))
    }
}
