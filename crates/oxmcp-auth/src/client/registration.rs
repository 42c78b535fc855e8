//! Metadata of a client, and dynamic registration with it.

use http::{HeaderValue, Method, StatusCode, header};
use serde::{Deserialize, Serialize};

use super::{
    conversation::Conversation,
    discovery::uri,
    identity::Client,
    oauth_error::{self, SentSecrets},
};
use crate::{
    error::{AuthError, Result},
    exchange::{Body, Request, Response},
    metadata::{
        authorization_server::AuthorizationServerMetadata,
        document::{self, Tolerated},
    },
    scope::ScopeSet,
    secret::Secret,
    time::UnixTime,
    url_rules::{is_loopback, is_uri},
};

/// The type of a client: an application on a user's machine, or one on a server.
///
/// See [Client Registration](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization/client-registration#dynamic-client-registration).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ApplicationType {
    /// A client on a user's machine: its redirect URIs are on loopback, or have a private scheme.
    Native,
    /// A client on a server: its redirect URIs are https.
    Web,
}

/// The metadata of a client, for dynamic registration or for a client ID metadata document
/// ([RFC 7591](https://www.rfc-editor.org/rfc/rfc7591#section-2)).
///
/// ```
/// use oxmcp_auth::client::{ApplicationType, ClientMetadata};
///
/// let metadata = ClientMetadata::new("My client", ["http://127.0.0.1:4711/callback"])?;
/// assert_eq!(metadata.application_type, ApplicationType::Native);
/// let document = metadata.document("https://client.example/oauth.json")?;
/// assert!(document.contains(r#""client_id":"https://client.example/oauth.json""#));
/// # Ok::<(), oxmcp_auth::AuthError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ClientMetadata {
    /// The name that users see when they are asked for consent.
    pub client_name: String,
    /// The URL of a page about the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_uri: Option<String>,
    /// The URL of a picture of the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logo_uri: Option<String>,
    /// The exact URIs to which authorization responses may be sent.
    pub redirect_uris: Vec<String>,
    /// The grant types that the client uses.
    pub grant_types: Vec<String>,
    /// The response types that the client uses.
    pub response_types: Vec<String>,
    /// The type of the client.
    pub application_type: ApplicationType,
    /// The method by which the client authenticates at the token endpoint. If it is absent, dynamic registration chooses from
    /// the methods that the server offers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_endpoint_auth_method: Option<String>,
    /// The scopes that the client may request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The public keys of a client that authenticates by `private_key_jwt`: a key set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwks: Option<serde_json::Value>,
    /// The identifier of the software, the same for every installation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub software_id: Option<String>,
    /// The version of the software.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub software_version: Option<String>,
}

impl ClientMetadata {
    /// Creates the metadata of a client with which users log in, by authorization codes and refresh tokens. The client is native
    /// if a redirect URI is on loopback or has a private scheme.
    ///
    /// # Errors
    ///
    /// If a redirect URI is neither https, nor loopback, nor a private scheme with a dot in it, such as `com.example.app:/`.
    pub fn new<S: Into<String>>(
        client_name: impl Into<String>,
        redirect_uris: impl IntoIterator<Item = S>,
    ) -> Result<Self> {
        let redirect_uris: Vec<_> = redirect_uris.into_iter().map(Into::into).collect();
        let mut is_native = false;
        for uri in &redirect_uris {
            is_native |= is_native_redirect(uri)?;
        }
        let owned = |all: &[&str]| all.iter().map(|it| (*it).to_owned()).collect();
        Ok(Self {
            client_name: client_name.into(),
            client_uri: None,
            logo_uri: None,
            redirect_uris,
            grant_types: owned(&["authorization_code", "refresh_token"]),
            response_types: owned(&["code"]),
            application_type: if is_native {
                ApplicationType::Native
            } else {
                ApplicationType::Web
            },
            token_endpoint_auth_method: None,
            scope: None,
            jwks: None,
            software_id: None,
            software_version: None,
        })
    }

    /// Returns the document to serve at this URL, which is then the client ID.
    ///
    /// # Errors
    ///
    /// If the URL cannot be a client ID.
    pub fn document(&self, url: &str) -> Result<String> {
        #[derive(Serialize)]
        struct Document<'a> {
            client_id: &'a str,
            #[serde(flatten)]
            metadata: &'a ClientMetadata,
        }
        super::identity::check_document_url(url)?;
        let document = Document {
            client_id: url,
            metadata: self,
        };
        Ok(serde_json::to_string(&document).unwrap_or_default())
    }
}

/// Checks a redirect URI. Returns whether it is that of a native application.
pub(crate) fn is_native_redirect(redirect: &str) -> Result<bool> {
    let refused = |why: &str| {
        Err(AuthError::configuration(format!(
            "invalid redirect URI {redirect:?}: {why}"
        )))
    };
    if !is_uri(redirect) {
        return refused("percent-encode characters that are not allowed in a URL");
    }
    if redirect.contains('#') {
        return refused("must not have a fragment");
    }
    let Ok(url) = url::Url::parse(redirect) else {
        return refused("not a URL");
    };
    match url.scheme() {
        "http" if is_loopback(&url) => Ok(true),
        "https" => Ok(is_loopback(&url)),
        scheme if scheme.contains('.') => Ok(true),
        _ => refused("must be https, http on loopback, or a private scheme with a dot in it"),
    }
}

/// Dynamic client registration: one request, whose result is a client.
///
/// See [Dynamic Client Registration](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization/client-registration#dynamic-client-registration).
#[derive(Debug)]
pub struct Registration {
    endpoint: String,
    issuer: String,
    metadata: ClientMetadata,
    tolerated: Vec<Tolerated>,
}

/// The members of the response that are used
/// ([RFC 7591, section 3.2.1](https://www.rfc-editor.org/rfc/rfc7591#section-3.2.1)).
#[derive(Deserialize)]
struct Answer {
    client_id: String,
    #[serde(default)]
    client_secret: Option<String>,
    #[serde(default, deserialize_with = "super::tokens::seconds")]
    client_secret_expires_at: Option<u64>,
    #[serde(default)]
    token_endpoint_auth_method: Option<String>,
}

impl Registration {
    /// Creates the registration of a client at a server.
    ///
    /// # Errors
    ///
    /// If clients cannot register there, or the server offers no authentication method for clients without keys.
    pub fn new(
        server: &AuthorizationServerMetadata,
        mut metadata: ClientMetadata,
        scopes: &ScopeSet,
    ) -> Result<Self> {
        let Some(endpoint) = server.registration_endpoint.clone() else {
            return Err(AuthError::unsupported(format!(
                "authorization server {:?} does not offer dynamic registration; register a client there, and configure its ID",
                server.issuer
            )));
        };
        if metadata.token_endpoint_auth_method.is_none() {
            metadata.token_endpoint_auth_method = Some(method(server)?.to_owned());
        }
        if metadata.scope.is_none() && !scopes.is_empty() {
            metadata.scope = Some(scopes.to_string());
        }
        Ok(Self {
            endpoint,
            issuer: server.issuer.clone(),
            metadata,
            tolerated: Vec::new(),
        })
    }
}

/// The authentication method to request: `none` if the server offers it, since a secret on a user's machine cannot be kept.
fn method(server: &AuthorizationServerMetadata) -> Result<&'static str> {
    let Some(offered) = &server.token_endpoint_auth_methods_supported else {
        return Ok("client_secret_basic");
    };
    let known = ["none", "client_secret_basic", "client_secret_post"];
    let found = known
        .into_iter()
        .find(|it| offered.iter().any(|of| of == it));
    found.ok_or_else(|| {
        AuthError::unsupported(format!(
            "authorization server {:?} only accepts clients that authenticate with {}; register a client there, and configure it",
            server.issuer,
            offered.join(", ")
        ))
    })
}

impl Conversation for Registration {
    type Output = Client;

    fn request(&mut self, _now: UnixTime) -> Result<Request> {
        let body = serde_json::to_vec(&self.metadata)
            .map_err(|_| AuthError::configuration("could not serialize the client metadata"))?;
        let mut request = Request::new(Body::from(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri(&self.endpoint)?;
        let json = HeaderValue::from_static("application/json");
        request
            .headers_mut()
            .insert(header::CONTENT_TYPE, json.clone());
        request.headers_mut().insert(header::ACCEPT, json);
        Ok(request)
    }

    fn receive(&mut self, response: &Response, _now: UnixTime) -> Result<Option<Client>> {
        let refused = || {
            let asked = format!(
                "registration with redirect URIs {:?} at {:?}",
                self.metadata.redirect_uris, self.endpoint
            );
            oauth_error::of(response, &asked, &SentSecrets::default())
        };
        if !matches!(response.status(), StatusCode::CREATED | StatusCode::OK) {
            return Err(refused());
        }
        let what = format!("registration response from {:?}", self.endpoint);
        let body = response.body().as_ref();
        let answer = document::read(body, &what, &mut self.tolerated);
        let answer: Answer = match answer {
            // Some servers refuse with 200.
            Err(_) if oauth_error::code(response).is_some() => return Err(refused()),
            answer => answer?,
        };
        let method = answer
            .token_endpoint_auth_method
            .filter(|it| !it.is_empty());
        let method = method.or_else(|| self.metadata.token_endpoint_auth_method.clone());
        let client = Client::registered(&self.issuer, answer.client_id);
        let mut client = client
            .map_err(|error| error.at(&self.endpoint))?
            .with_redirect_uris(self.metadata.redirect_uris.clone());
        // Some servers issue a secret to clients that requested none: then the method decides.
        if let Some(secret) = answer.client_secret.filter(|it| !it.is_empty()) {
            client = client.with_registered_secret(Secret::new(secret), method.as_deref())?;
        } else if method.is_some_and(|it| it.starts_with("client_secret")) {
            // Without a secret, the client can only be a public one.
            let member = "token_endpoint_auth_method";
            self.tolerated.push(Tolerated::new(what, member, "none"));
        }
        // 0 means that the secret does not expire.
        if let Some(at) = answer.client_secret_expires_at.filter(|it| *it > 0) {
            client = client.with_expiry(UnixTime::from_seconds(at));
        }
        Ok(Some(client))
    }

    fn tolerated(&mut self) -> Vec<Tolerated> {
        std::mem::take(&mut self.tolerated)
    }
}
