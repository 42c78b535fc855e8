//! Token requests of every grant.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use url::form_urlencoded;

use super::{
    authentication::{Form, authenticate},
    authorization::{AuthorizationAttempt, AuthorizationCode},
    conversation::Conversation,
    discovery::uri,
    identity::Client,
    oauth_error::{self, SentSecrets},
    refusal::nonce,
    tokens::{TokenAnswer, Tokens, sensitive},
};
use crate::{
    dpop::{Proof, ProofKey},
    error::{AuthError, Result},
    exchange::{Body, Request, Response},
    metadata::{authorization_server::AuthorizationServerMetadata, document::Tolerated},
    scope::ScopeSet,
    secret::Secret,
    time::UnixTime,
};

/// The token type of an identity assertion that is a JWT for another authorization server.
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// A token request, which exchanges a grant for tokens. If the server requires a nonce in the DPoP proof, the request is sent
/// once more.
///
/// ```
/// use oxmcp_auth::{AuthorizationServerMetadata, Response, ScopeSet, UnixTime, client::{Client, Conversation, TokenRequest}};
///
/// let server = AuthorizationServerMetadata::parse(br#"{"issuer": "https://as.example", "token_endpoint": "https://as.example/token"}"#)?;
/// let client = Client::new("my-service")?.with_secret("hunter2");
/// let mut request = TokenRequest::client_credentials(&server, &client, Some("https://mcp.example/mcp"), ScopeSet::new())?;
/// let now = UnixTime::from_seconds(1_000);
/// let sent = request.request(now)?;
/// assert_eq!(sent.body().as_ref(), b"grant_type=client_credentials&resource=https%3A%2F%2Fmcp.example%2Fmcp");
/// let answer = Response::new(r#"{"access_token": "abc", "token_type": "Bearer", "expires_in": 60}"#.into());
/// let tokens = request.receive(&answer, now)?.expect("tokens");
/// assert_eq!(tokens.expires_at, Some(UnixTime::from_seconds(1_060)));
/// # Ok::<(), oxmcp_auth::AuthError>(())
/// ```
#[derive(Debug)]
pub struct TokenRequest {
    post: Post,
    requested: ScopeSet,
}

impl TokenRequest {
    /// Creates a request with the authorization code grant, and the code from the user's browser.
    ///
    /// # Errors
    ///
    /// If the attempt was made at another server or for another client, or the server has no token endpoint.
    pub fn authorization_code(
        server: &AuthorizationServerMetadata,
        client: &Client,
        attempt: &AuthorizationAttempt,
        code: AuthorizationCode,
    ) -> Result<Self> {
        if attempt.issuer() != server.issuer {
            return Err(AuthError::untrusted(format!(
                "cannot use the authorization code at {:?}: it was issued by {:?}; begin another login",
                server.issuer,
                attempt.issuer()
            )));
        }
        if attempt.client_id() != client.id() {
            return Err(AuthError::untrusted(format!(
                "cannot use the authorization code as the client {:?}: it was issued to {:?}; begin another login",
                client.id(),
                attempt.client_id()
            )));
        }
        let form = vec![
            ("grant_type", "authorization_code".into()),
            ("code", code.0),
            ("redirect_uri", attempt.redirect_uri().into()),
            ("code_verifier", attempt.verifier().clone()),
        ];
        // No `scope` is sent, since the scopes are those of the code.
        let mut request = Self::new(server, Some(client), form, attempt.resource(), None)?;
        request.requested = attempt.scopes();
        Ok(request)
    }

    /// Creates a request with the refresh token grant. `scopes` are those of the previous tokens.
    ///
    /// # Errors
    ///
    /// If the server has no token endpoint.
    pub fn refresh(
        server: &AuthorizationServerMetadata,
        client: &Client,
        refresh_token: &Secret,
        resource: Option<&str>,
        scopes: ScopeSet,
    ) -> Result<Self> {
        let form = vec![
            ("grant_type", "refresh_token".into()),
            ("refresh_token", refresh_token.clone()),
        ];
        // Without `scope` the granted scopes stay, even if they differ from those that were requested.
        let mut request = Self::new(server, Some(client), form, resource, None)?;
        request.requested = scopes;
        Ok(request)
    }

    /// Creates a request with the client credentials grant, for a client that acts on its own behalf.
    ///
    /// # Errors
    ///
    /// If the server has no token endpoint.
    ///
    /// See [OAuth Client Credentials](https://modelcontextprotocol.io/extensions/auth/oauth-client-credentials).
    pub fn client_credentials(
        server: &AuthorizationServerMetadata,
        client: &Client,
        resource: Option<&str>,
        scopes: ScopeSet,
    ) -> Result<Self> {
        let form = vec![("grant_type", "client_credentials".into())];
        Self::new(server, Some(client), form, resource, Some(scopes))
    }

    /// Creates a request with the JWT bearer grant, for an assertion of a signer that the server trusts
    /// ([RFC 7523](https://www.rfc-editor.org/rfc/rfc7523#section-2.1)).
    ///
    /// The signer is an identity provider, or the platform on which a workload runs. A workload needs no client.
    ///
    /// # Errors
    ///
    /// If the server has no token endpoint.
    pub fn jwt_bearer(
        server: &AuthorizationServerMetadata,
        client: Option<&Client>,
        assertion: &Secret,
        resource: Option<&str>,
        scopes: ScopeSet,
    ) -> Result<Self> {
        let grant = "urn:ietf:params:oauth:grant-type:jwt-bearer";
        let form = vec![
            ("grant_type", grant.into()),
            ("assertion", assertion.clone()),
        ];
        Self::new(server, client, form, resource, Some(scopes))
    }

    fn new(
        server: &AuthorizationServerMetadata,
        client: Option<&Client>,
        mut form: Form,
        resource: Option<&str>,
        scopes: Option<ScopeSet>,
    ) -> Result<Self> {
        form.extend(resource.map(|it| ("resource", it.into())));
        let scopes = scopes.unwrap_or_default();
        if !scopes.is_empty() {
            form.push(("scope", scopes.to_string().into()));
        }
        Ok(Self {
            post: Post::new(server, client, form)?,
            requested: scopes,
        })
    }

    /// Binds the tokens to a key: the request carries a DPoP proof, and bearer tokens are refused.
    #[must_use]
    pub fn proof_key(mut self, key: Arc<ProofKey>) -> Self {
        self.post.proof_key = Some(key);
        self
    }
}

impl Conversation for TokenRequest {
    type Output = Tokens;

    fn request(&mut self, now: UnixTime) -> Result<Request> {
        self.post.request(now)
    }

    fn tolerated(&mut self) -> Vec<Tolerated> {
        std::mem::take(&mut self.post.tolerated)
    }

    fn receive(&mut self, response: &Response, _now: UnixTime) -> Result<Option<Tokens>> {
        let Some(answer) = self.post.receive(response)? else {
            return Ok(None);
        };
        let is_bound = self.post.proof_key.is_some();
        let tokens = Tokens::of(answer, &self.requested, self.post.asked_at, is_bound);
        tokens
            .map(Some)
            .map_err(|error| error.at(&self.post.endpoint))
    }
}

/// A token exchange at the identity provider of an enterprise, whose result is a grant for [`TokenRequest::jwt_bearer`] at the
/// authorization server of an MCP server.
///
/// See [Enterprise-Managed Authorization](https://modelcontextprotocol.io/extensions/auth/enterprise-managed-authorization).
#[derive(Debug)]
pub struct TokenExchange {
    post: Post,
}

impl TokenExchange {
    /// Exchanges a subject token at an identity provider, for a grant at the authorization server with the issuer `audience`.
    ///
    /// # Errors
    ///
    /// If the identity provider has no token endpoint.
    pub fn id_jag(
        identity_provider: &AuthorizationServerMetadata,
        client: &Client,
        subject: &SubjectToken,
        audience: &str,
    ) -> Result<Self> {
        let grant = "urn:ietf:params:oauth:grant-type:token-exchange";
        let form: Form = vec![
            ("grant_type", grant.into()),
            ("requested_token_type", ID_JAG.into()),
            ("audience", audience.into()),
            ("subject_token", subject.token.clone()),
            ("subject_token_type", subject.kind.into()),
        ];
        Ok(Self {
            post: Post::new(identity_provider, Some(client), form)?,
        })
    }

    /// Sets the MCP server that the grant is for.
    #[must_use]
    pub fn resource(mut self, resource: &str) -> Self {
        self.post.form.push(("resource", resource.into()));
        self
    }

    /// Sets the scopes that the grant is for.
    #[must_use]
    pub fn scopes(mut self, scopes: &ScopeSet) -> Self {
        if !scopes.is_empty() {
            self.post.form.push(("scope", scopes.to_string().into()));
        }
        self
    }
}

/// A token of an identity provider, which identifies a user.
#[derive(Clone, Debug)]
pub struct SubjectToken {
    token: Secret,
    kind: &'static str,
}

impl SubjectToken {
    /// Wraps an ID token of OpenID Connect.
    #[must_use]
    pub fn id_token(token: impl Into<Secret>) -> Self {
        Self {
            token: token.into(),
            kind: "urn:ietf:params:oauth:token-type:id_token",
        }
    }

    /// Wraps a SAML 2 assertion.
    #[must_use]
    pub fn saml2(token: impl Into<Secret>) -> Self {
        Self {
            token: token.into(),
            kind: "urn:ietf:params:oauth:token-type:saml2",
        }
    }

    /// Wraps a refresh token of the identity provider.
    #[must_use]
    pub fn refresh_token(token: impl Into<Secret>) -> Self {
        Self {
            token: token.into(),
            kind: "urn:ietf:params:oauth:token-type:refresh_token",
        }
    }
}

impl Conversation for TokenExchange {
    type Output = Secret;

    fn request(&mut self, now: UnixTime) -> Result<Request> {
        self.post.request(now)
    }

    fn tolerated(&mut self) -> Vec<Tolerated> {
        std::mem::take(&mut self.post.tolerated)
    }

    fn receive(&mut self, response: &Response, _now: UnixTime) -> Result<Option<Secret>> {
        let Some(answer) = self.post.receive(response)? else {
            return Ok(None);
        };
        if answer.issued_token_type.as_deref() != Some(ID_JAG) {
            return Err(AuthError::malformed(format!(
                "unexpected token type from {:?}; expected an identity assertion (`{ID_JAG}`)",
                self.post.endpoint
            )));
        }
        Ok(Some(answer.access_token.into()))
    }
}

/// A form that is posted to a token endpoint.
#[derive(Debug)]
struct Post {
    server: AuthorizationServerMetadata,
    endpoint: String,
    client: Option<Client>,
    form: Form,
    proof_key: Option<Arc<ProofKey>>,
    nonce: Option<String>,
    asked_at: UnixTime,
    /// The secrets of the request that was sent.
    sent: SentSecrets,
    tolerated: Vec<Tolerated>,
}

impl Post {
    fn new(
        server: &AuthorizationServerMetadata,
        client: Option<&Client>,
        form: Form,
    ) -> Result<Self> {
        if let Some(client) = client {
            client.check_issuer(&server.issuer)?;
        }
        Ok(Self {
            endpoint: server.token_endpoint()?.to_owned(),
            server: server.clone(),
            client: client.cloned(),
            form,
            proof_key: None,
            nonce: None,
            asked_at: UnixTime::default(),
            sent: SentSecrets::default(),
            tolerated: Vec::new(),
        })
    }

    fn request(&mut self, now: UnixTime) -> Result<Request> {
        self.asked_at = now;
        let mut form = self.form.clone();
        let mut headers = HeaderMap::new();
        if let Some(client) = &self.client {
            authenticate(client, &self.server, now, &mut headers, &mut form)?;
        }
        if let Some(key) = &self.proof_key {
            let proof = Proof::new(&Method::POST, &self.endpoint, now);
            let proof = self.nonce.iter().fold(proof, |proof, it| proof.nonce(it));
            let proof = sensitive(&key.proof(&proof)?)?;
            headers.insert(HeaderName::from_static("dpop"), proof);
        }
        self.sent = SentSecrets::of(self.client.as_ref(), &form, &headers);
        post_form(&self.endpoint, &form, headers)
    }

    /// The response of the token endpoint; `None` if the request must be sent again.
    fn receive(&mut self, response: &Response) -> Result<Option<TokenAnswer>> {
        let code = oauth_error::code(response);
        if response.status() == StatusCode::OK {
            let body = response.body().as_ref();
            let answer = TokenAnswer::read(body, &self.endpoint, &mut self.tolerated);
            // Some servers refuse with 200.
            if answer.is_ok() || code.is_none() {
                return answer.map(Some);
            }
        }
        if self.proof_key.is_some()
            && self.nonce.is_none()
            && code.as_deref() == Some("use_dpop_nonce")
            && let Some(nonce) = nonce(response.headers())
        {
            self.nonce = Some(nonce);
            return Ok(None);
        }
        let asked = format!("token request to {:?}", self.endpoint);
        Err(oauth_error::of(response, &asked, &self.sent))
    }
}

/// A request that posts a form.
pub(crate) fn post_form(endpoint: &str, form: &Form, mut headers: HeaderMap) -> Result<Request> {
    let mut body = form_urlencoded::Serializer::new(String::new());
    for (name, value) in form {
        body.append_pair(name, value.expose());
    }
    let mut request = Request::new(Body::from(body.finish()));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri(endpoint)?;
    let of = HeaderValue::from_static;
    headers.insert(
        header::CONTENT_TYPE,
        of("application/x-www-form-urlencoded"),
    );
    headers.insert(header::ACCEPT, of("application/json"));
    *request.headers_mut() = headers;
    Ok(request)
}
