//! Introspection of tokens at their issuer.

use http::{HeaderValue, Method, StatusCode, header};
use serde::Deserialize;
use serde_json::Value;

use super::verified_token::VerifiedToken;
use crate::{
    error::{AuthError, Result},
    exchange::{Body, Request, Response, basic_credentials, bearer_credentials},
    jwt::{Claims, Expected},
    metadata::document::without_mark,
    secret::Secret,
    time::UnixTime,
};

/// The default number of seconds for which a response is cached.
const HOLDS: u64 = 30;

/// The most bytes that a response may have.
const MAX_BYTES: usize = 64 * 1024;

/// Token introspection at an authorization server ([RFC 7662](https://www.rfc-editor.org/rfc/rfc7662)): for tokens that are not
/// JSON Web Tokens, and for revocations that must take effect within seconds.
///
/// ```
/// use oxmcp_auth::{Secret, server::Introspection};
///
/// let introspection = Introspection::new("https://auth.example.com", "https://auth.example.com/introspect")
///     .basic("mcp-server", &Secret::new("hunter2"));
/// ```
#[derive(Clone, Debug)]
pub struct Introspection {
    pub(crate) issuer: String,
    endpoint: String,
    /// The `Authorization` header of the requests, or the reason why it cannot be sent.
    authorization: Option<Result<HeaderValue>>,
    holds: u64,
}

#[derive(Deserialize)]
struct Answer {
    active: bool,
    token_type: Option<Value>,
    /// The use of the token, which some servers send instead of a type.
    token_use: Option<Value>,
}

impl Answer {
    /// Whether the token is an access token, as far as the response says. Other tokens, such as refresh tokens, can be active,
    /// too.
    fn is_access_token(&self) -> bool {
        let is_one_of = |value: &Option<Value>, names: &[&str]| match value {
            None => true,
            Some(value) => value
                .as_str()
                .is_some_and(|it| names.iter().any(|name| it.eq_ignore_ascii_case(name))),
        };
        is_one_of(&self.token_type, &["Bearer", "DPoP", "N_A"])
            && is_one_of(&self.token_use, &["access_token", "access"])
    }
}

impl Introspection {
    /// Introspects the tokens of this issuer at this endpoint.
    #[must_use]
    pub fn new(issuer: impl Into<String>, endpoint: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            endpoint: endpoint.into(),
            authorization: None,
            holds: HOLDS,
        }
    }

    /// Authenticates with the client ID and secret of this server at the issuer.
    #[must_use]
    pub fn basic(mut self, client_id: &str, client_secret: &Secret) -> Self {
        self.authorization = Some(basic_credentials(client_id, client_secret));
        self
    }

    /// Authenticates with a bearer token of this server.
    #[must_use]
    pub fn bearer(mut self, token: &Secret) -> Self {
        self.authorization = Some(bearer_credentials(token));
        self
    }

    /// Sets the number of seconds for which a response is cached, 30 by default and at least 1. A revoked token is accepted for
    /// that much longer.
    #[must_use]
    pub fn holds(self, seconds: u64) -> Self {
        Self {
            // The caller that sent the request must find the result in the cache.
            holds: seconds.max(1),
            ..self
        }
    }

    /// The introspection request for a token.
    pub(crate) fn request(&self, token: &Secret) -> Result<Request> {
        let body = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("token", token.expose())
            .append_pair("token_type_hint", "access_token")
            .finish();
        let mut request = http::Request::builder()
            .method(Method::POST)
            .uri(&self.endpoint)
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Body::from(body))
            .map_err(|_| {
                AuthError::configuration(format!(
                    "invalid URL of the introspection endpoint: {:?}",
                    self.endpoint
                ))
            })?;
        if let Some(authorization) = &self.authorization {
            let headers = request.headers_mut();
            headers.insert(header::AUTHORIZATION, authorization.clone()?);
        }
        Ok(request)
    }

    /// Reads an introspection response. Returns the token, and the time until which the result may be cached.
    pub(crate) fn read(
        &self,
        response: &Response,
        audiences: &[String],
        clock_skew: u64,
        now: UnixTime,
    ) -> Result<(VerifiedToken, UnixTime)> {
        let body = without_mark(response.body().as_ref());
        if response.status() != StatusCode::OK || body.len() > MAX_BYTES {
            return Err(AuthError::unavailable(format!(
                "introspection at {} failed with {} and {} bytes; check the endpoint and the credentials of this server",
                self.endpoint,
                response.status(),
                body.len()
            )));
        }
        let answer: Answer = serde_json::from_slice(body).map_err(|_| {
            AuthError::unavailable(format!(
                "invalid introspection response from {}; check the endpoint",
                self.endpoint
            ))
        })?;
        if !answer.active {
            return Err(AuthError::invalid_token(
                "token is not active: it may have expired or been revoked",
            ));
        }
        if !answer.is_access_token() {
            return Err(AuthError::invalid_token("token is not an access token"));
        }
        let claims = Claims::parse_introspected(body)?;
        let expected = Expected {
            issuer: &self.issuer,
            audiences,
            own_audiences: &[],
            clock_skew,
            now,
        };
        expected.check_introspected(claims.known())?;
        let end = claims
            .known()
            .exp
            .map_or_else(|| now.plus(self.holds), |exp| exp.plus(clock_skew));
        let mut token = VerifiedToken::from_claims(&self.issuer, claims);
        token.is_introspected = true;
        Ok((token, end.min(now.plus(self.holds))))
    }
}
