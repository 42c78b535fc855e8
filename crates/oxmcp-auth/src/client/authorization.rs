//! The authorization request, and the response to it.

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use url::form_urlencoded;

use super::{
    discovery::Discovered, identity::Client, oauth_error::shown, registration::is_native_redirect,
};
use crate::{
    error::{AuthError, Result},
    jose::base64url,
    scope::ScopeSet,
    secret::{Secret, unguessable},
    url_rules::{is_uri, parse},
};

/// The maximum length of a response in bytes.
const MAX_ANSWER: usize = 16 * 1024;

/// An authorization request: the user is sent to the authorization server, and the response arrives at a redirect URI.
///
/// ```
/// # use oxmcp_auth::{Response, ScopeSet, UnixTime, client::*};
/// # let now = UnixTime::default();
/// # let mut discovery = Discovery::new("https://mcp.example/mcp", None, DiscoveryOptions::default())?;
/// # let _ = discovery.request(now)?;
/// # let answer = r#"{"resource": "https://mcp.example/mcp", "authorization_servers": ["https://as.example"]}"#;
/// # discovery.receive(&Response::new(answer.into()), now)?;
/// # let answer = r#"{"issuer": "https://as.example", "authorization_endpoint": "https://as.example/authorize",
/// #   "code_challenge_methods_supported": ["S256"]}"#;
/// # let discovered = discovery.receive(&Response::new(answer.into()), now)?.unwrap();
/// let client = Client::new("my-client")?;
/// let attempt = Authorization::new(&discovered, &client, "http://127.0.0.1:4711/callback")
///     .scopes(ScopeSet::parse("mcp:read"))
///     .begin()?;
/// assert!(attempt.url().starts_with("https://as.example/authorize?response_type=code&client_id=my-client"));
/// // The response to another request, or a forged one.
/// let error = attempt.finish("http://127.0.0.1:4711/callback?code=x&state=guessed").unwrap_err();
/// assert!(error.message().contains("state"));
/// # Ok::<(), oxmcp_auth::AuthError>(())
/// ```
///
/// See [Authorization Flow Steps](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization#authorization-flow-steps).
#[derive(Clone, Debug)]
pub struct Authorization<'a> {
    discovered: &'a Discovered,
    client: &'a Client,
    redirect_uri: &'a str,
    scopes: ScopeSet,
    thumbprint: Option<String>,
    parameters: Vec<(String, String)>,
}

impl<'a> Authorization<'a> {
    /// Creates a request of a client, whose response arrives at a redirect URI.
    #[must_use]
    pub fn new(discovered: &'a Discovered, client: &'a Client, redirect_uri: &'a str) -> Self {
        Self {
            discovered,
            client,
            redirect_uri,
            scopes: ScopeSet::new(),
            thumbprint: None,
            parameters: Vec::new(),
        }
    }

    /// Sets the scopes to request; without any, no `scope` is sent.
    #[must_use]
    pub fn scopes(mut self, scopes: ScopeSet) -> Self {
        self.scopes = scopes;
        self
    }

    /// Sets the thumbprint of the key to which the code is bound
    /// ([RFC 9449, section 10](https://www.rfc-editor.org/rfc/rfc9449#section-10)).
    #[must_use]
    pub fn proof_key(mut self, thumbprint: impl Into<String>) -> Self {
        self.thumbprint = Some(thumbprint.into());
        self
    }

    /// Adds a parameter, such as `login_hint`. The parameters of the request itself cannot be changed.
    #[must_use]
    pub fn parameter(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.parameters.push((name.into(), value.into()));
        self
    }

    /// Makes the request: the URL to which the user is sent, and the state to keep until the response arrives.
    ///
    /// # Errors
    ///
    /// If the server has no authorization endpoint or no PKCE with S256, if the client belongs to another server, or if the
    /// redirect URI is neither https, nor loopback, nor a private scheme.
    pub fn begin(self) -> Result<AuthorizationAttempt> {
        let server = &self.discovered.server;
        let endpoint = server.authorization_endpoint()?;
        self.client.check_issuer(&server.issuer)?;
        is_native_redirect(self.redirect_uri)?;
        let (verifier, state) = (unguessable()?, unguessable()?);
        let challenge = base64url::encode(digest(&SHA256, verifier.expose().as_bytes()));
        let scope = self.scopes.to_string();
        let mut own = vec![
            ("response_type", "code"),
            ("client_id", self.client.id()),
            ("redirect_uri", self.redirect_uri),
            ("state", state.expose()),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        let resource = self.discovered.resource.as_deref();
        own.extend(resource.map(|it| ("resource", it)));
        own.extend((!scope.is_empty()).then_some(("scope", scope.as_str())));
        own.extend(self.thumbprint.as_deref().map(|it| ("dpop_jkt", it)));
        let others = self.parameters.iter().filter(|(name, _)| {
            let is_ours = own.iter().any(|(own, _)| own == name);
            !is_ours && !matches!(name.as_str(), "resource" | "scope" | "dpop_jkt")
        });
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(&own).extend_pairs(others);
        // OpenID Connect issues refresh tokens only if the user is asked for consent.
        let has_prompt = self.parameters.iter().any(|(name, _)| name == "prompt");
        if self.scopes.contains("offline_access") && !has_prompt {
            query.append_pair("prompt", "consent");
        }
        // An existing query of the endpoint is kept.
        if !is_uri(endpoint) {
            return Err(AuthError::malformed(format!(
                "invalid authorization_endpoint {endpoint:?}: percent-encode characters that are not allowed in a URL"
            )));
        }
        let divider = match parse(endpoint, "authorization_endpoint")?.query() {
            None => "?",
            Some("") => "",
            Some(_) => "&",
        };
        Ok(AuthorizationAttempt {
            url: format!("{endpoint}{divider}{}", query.finish()),
            issuer: server.issuer.clone(),
            is_issuer_required: server.authorization_response_iss_parameter_supported,
            client_id: self.client.id().to_owned(),
            redirect_uri: self.redirect_uri.to_owned(),
            resource: self.discovered.resource.clone(),
            scopes: scope,
            state,
            verifier,
        })
    }
}

/// The state of an authorization request. Keep it until the response arrives, and use it for one response only.
#[derive(Clone, Debug)]
pub struct AuthorizationAttempt {
    url: String,
    issuer: String,
    is_issuer_required: bool,
    client_id: String,
    redirect_uri: String,
    resource: Option<String>,
    scopes: String,
    state: Secret,
    verifier: Secret,
}

/// The stored form of an attempt.
#[derive(Serialize, Deserialize)]
struct StoredAttempt {
    issuer: String,
    is_issuer_required: bool,
    client_id: String,
    redirect_uri: String,
    resource: Option<String>,
    scopes: String,
    state: String,
    verifier: String,
}

impl AuthorizationAttempt {
    /// Returns the URL to which the user is sent. After [`from_json`](Self::from_json) it is empty.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the `state` of the request, by which the attempt of a response is found among several.
    #[must_use]
    pub fn state(&self) -> &Secret {
        &self.state
    }

    /// Returns the issuer from which the response must come.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Returns the redirect URI at which the response arrives.
    #[must_use]
    pub fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// Returns the scopes that were requested.
    #[must_use]
    pub fn scopes(&self) -> ScopeSet {
        ScopeSet::parse(&self.scopes)
    }

    pub(crate) fn client_id(&self) -> &str {
        &self.client_id
    }

    pub(crate) fn resource(&self) -> Option<&str> {
        self.resource.as_deref()
    }

    pub(crate) fn verifier(&self) -> &Secret {
        &self.verifier
    }

    /// Returns the attempt as text, for a response that arrives at another process. The text and the code are enough to get the
    /// token, so the text must be sealed.
    #[must_use]
    pub fn to_json(&self) -> Secret {
        let stored = StoredAttempt {
            issuer: self.issuer.clone(),
            is_issuer_required: self.is_issuer_required,
            client_id: self.client_id.clone(),
            redirect_uri: self.redirect_uri.clone(),
            resource: self.resource.clone(),
            scopes: self.scopes.clone(),
            state: self.state.expose().to_owned(),
            verifier: self.verifier.expose().to_owned(),
        };
        Secret::new(serde_json::to_string(&stored).unwrap_or_default())
    }

    /// Restores an attempt from the result of [`to_json`](Self::to_json).
    ///
    /// # Errors
    ///
    /// If the text is not a stored attempt.
    pub fn from_json(text: &Secret) -> Result<Self> {
        let stored: StoredAttempt = serde_json::from_str(text.expose())
            .map_err(|_| AuthError::malformed("could not read the stored login; log in again"))?;
        Ok(Self {
            url: String::new(),
            issuer: stored.issuer,
            is_issuer_required: stored.is_issuer_required,
            client_id: stored.client_id,
            redirect_uri: stored.redirect_uri,
            resource: stored.resource,
            scopes: stored.scopes,
            state: stored.state.into(),
            verifier: stored.verifier.into(),
        })
    }

    /// Receives the authorization response: the URL to which the browser was sent, or only its query.
    ///
    /// # Errors
    ///
    /// If it is the response to another request, comes from another issuer, is an error, or has no code. If the response cannot
    /// be trusted, the message shows neither its code nor its error.
    ///
    /// See [Authorization Response Validation](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization#authorization-response-validation).
    pub fn finish(&self, answer: &str) -> Result<AuthorizationCode> {
        if answer.len() > MAX_ANSWER {
            return Err(AuthError::limit(format!(
                "authorization response is longer than {MAX_ANSWER} bytes"
            )));
        }
        let query = answer.split_once('?').map_or(answer, |(_, query)| query);
        let query = query.split('#').next().unwrap_or_default();
        let mut found = Answer::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            found.take(&name, value.into_owned())?;
        }
        self.check(&found)?;
        if let Some(code) = &found.error {
            let code = shown(code);
            let description = found.description.as_deref().unwrap_or("no description");
            return Err(AuthError::refused(
                format!(
                    "authorization server {:?} refused the login: {code}: {}",
                    self.issuer,
                    shown(description)
                ),
                Some(&code),
            ));
        }
        match found.code.filter(|it| !it.is_empty()) {
            Some(code) => Ok(AuthorizationCode(code.into())),
            None => Err(AuthError::malformed(format!(
                "authorization response from {:?} has neither a code nor an error",
                self.issuer
            ))),
        }
    }

    /// Checks that the response is to this request and from its server, before any other part of it is used.
    fn check(&self, answer: &Answer) -> Result<()> {
        if answer.state.as_deref().map(Secret::from).as_ref() != Some(&self.state) {
            return Err(AuthError::untrusted(format!(
                "authorization response does not belong to the request to {:?}: `state` is missing or wrong; log in again",
                self.issuer
            )));
        }
        let issuer = &self.issuer;
        match &answer.issuer {
            Some(from) if from == issuer => Ok(()),
            Some(from) => Err(AuthError::untrusted(format!(
                "issuer mismatch: authorization response is from {:?}; expected {issuer:?}",
                shown(from)
            ))),
            None if self.is_issuer_required => Err(AuthError::untrusted(format!(
                "authorization response has no `iss`, although the metadata of {issuer:?} advertises it"
            ))),
            None => Ok(()),
        }
    }
}

/// The parameters of an authorization response.
#[derive(Default)]
struct Answer {
    state: Option<String>,
    issuer: Option<String>,
    code: Option<String>,
    error: Option<String>,
    description: Option<String>,
}

impl Answer {
    fn take(&mut self, name: &str, value: String) -> Result<()> {
        let place = match name {
            "state" => &mut self.state,
            "iss" => &mut self.issuer,
            "code" => &mut self.code,
            "error" => &mut self.error,
            "error_description" => &mut self.description,
            _ => return Ok(()),
        };
        if place.replace(value).is_some() {
            return Err(AuthError::untrusted(format!(
                "duplicate parameter `{name}` in the authorization response"
            )));
        }
        Ok(())
    }
}

/// An authorization code, which can be exchanged for tokens once.
#[derive(Clone, Debug)]
pub struct AuthorizationCode(pub(crate) Secret);
