//! The settings of a protected endpoint.

use std::{
    future::Future,
    iter,
    sync::{Arc, OnceLock},
};

use http::{Uri, request::Parts};
use oxmcp_auth::{
    AuthError, ScopeSet, Secret,
    dpop::{ProofVerifier, ReplayCache},
    protected_resource_metadata_urls,
    server::{
        Introspection, ResourceServer, ScopeHierarchy, TokenVerifier, TrustedIssuer, VerifiedToken,
    },
};

use super::{
    deadline::StreamDeadline,
    fetch::{Clients, Waiting},
    guard::{Guard, Verify},
};
use crate::{
    debug::opaque_debug,
    error::{Error, Result},
    http::client::{DynHttpClient, HttpClient},
    session::shared_keys::SharedKeys,
};

/// The seconds by which clocks may differ.
const CLOCK_SKEW: u64 = 60;

/// The access tokens that an endpoint requires: their issuers, audiences and scopes.
///
/// ```
/// use oxmcp::{Server, auth::server::TrustedIssuer, http::{ProtectedResource, StreamableHttp}};
///
/// let resource = ProtectedResource::new("https://mcp.example.com/mcp")
///     .issuer(TrustedIssuer::new("https://auth.example.com"))
///     .scopes("mcp:use");
/// let server = Server::new("files", "1.0.0");
/// let endpoint = StreamableHttp::from(server)
///     .allowed_hosts(["mcp.example.com"])
///     .protect(resource.clone());
/// let app = axum::Router::new()
///     .route_service("/mcp", endpoint)
///     .fallback_service(resource.metadata());
/// # let _: axum::Router = app;
/// ```
///
/// A request without a valid token gets 401 and a challenge with the URL of the [metadata](Self::metadata), which names the issuer.
/// Clients need no other configuration. If a token lacks the scopes of an operation, such as those of
/// [`Tool::scopes`](crate::Tool::scopes), the response is 403 and names all required scopes.
///
/// Handlers find the caller in [`RequestContext::principal`](crate::RequestContext::principal). Sessions, request states and
/// resumed streams belong to the caller.
///
/// Cloning is cheap, and all clones are the same resource and share verified tokens. [`check`](Self::check) and
/// [`StreamableHttp::serve`](crate::http::StreamableHttp::serve) report invalid settings; until they are corrected, every request
/// is rejected.
///
/// See [authorization](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization).
#[derive(Clone)]
pub struct ProtectedResource {
    settings: Arc<Settings>,
    guard: Arc<OnceLock<Result<Arc<Guard>, AuthError>>>,
}

#[derive(Clone)]
struct Settings {
    url: String,
    audiences: Vec<String>,
    issuers: Vec<TrustedIssuer>,
    introspection: Option<Introspection>,
    /// The user's verifier, and the issuers whose tokens it accepts.
    own: Option<(Verify, Vec<String>)>,
    scopes: String,
    supported: String,
    hierarchy: ScopeHierarchy,
    clock_skew: u64,
    dpop: Option<(ProofVerifier, bool)>,
    name: Option<String>,
    documentation: Option<String>,
    is_owned_without_client: bool,
    hides_unpermitted: bool,
    keeps_streams: bool,
    client: Option<Arc<dyn DynHttpClient>>,
}

impl ProtectedResource {
    /// Creates a resource with the endpoint's public URL, as clients reach it through any proxies. Tokens must have this URL as
    /// their audience. It is never derived from the headers of a request.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            settings: Arc::new(Settings {
                url: url.into(),
                audiences: Vec::new(),
                issuers: Vec::new(),
                introspection: None,
                own: None,
                scopes: String::new(),
                supported: String::new(),
                hierarchy: ScopeHierarchy::new(),
                clock_skew: CLOCK_SKEW,
                dpop: None,
                name: None,
                documentation: None,
                is_owned_without_client: false,
                hides_unpermitted: false,
                keeps_streams: false,
                client: None,
            }),
            guard: Arc::default(),
        }
    }

    /// Accepts tokens of an issuer, verified with the issuer's keys. May be called for several issuers.
    #[must_use]
    pub fn issuer(mut self, issuer: TrustedIssuer) -> Self {
        self.set().issuers.push(issuer);
        self
    }

    /// Introspects tokens that are not from an issuer set with [`issuer`](Self::issuer), such as opaque tokens, which only their
    /// issuer can read.
    #[must_use]
    pub fn introspection(mut self, introspection: Introspection) -> Self {
        self.set().introspection = Some(introspection);
        self
    }

    /// Verifies tokens with your own function instead. Its results are not cached. The metadata names the `issuers`.
    ///
    /// The function must check that a token is for this resource and has not expired. The message of its error is sent to the
    /// client.
    ///
    /// ```
    /// use oxmcp::{auth::{AuthError, server::VerifiedToken}, http::ProtectedResource};
    ///
    /// # async fn find_user(token: &str) -> Option<String> { None }
    /// let resource = ProtectedResource::new("https://mcp.example.com/mcp")
    ///     .verify_with(["https://auth.example.com"], |token| async move {
    ///         let user = find_user(token.expose()).await;
    ///         let user = user.ok_or_else(|| AuthError::invalid_token("the token is unknown"))?;
    ///         let mut token = VerifiedToken::new("https://auth.example.com");
    ///         token.subject = Some(user);
    ///         Ok(token)
    ///     });
    /// ```
    #[must_use]
    pub fn verify_with<S, F, Fut>(mut self, issuers: impl IntoIterator<Item = S>, verify: F) -> Self
    where
        S: Into<String>,
        F: Fn(Secret) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<VerifiedToken, AuthError>> + Send + 'static,
    {
        let verify: Verify = Arc::new(move |token| Box::pin(verify(token)));
        let issuers = issuers.into_iter().map(Into::into).collect();
        self.set().own = Some((verify, issuers));
        self
    }

    /// Also accepts tokens for this audience. Some issuers name resources freely, not by URL.
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.set().audiences.push(audience.into());
        self
    }

    /// Sets the scopes that every request needs, separated by spaces. Clients ask for these first.
    #[must_use]
    pub fn scopes(mut self, scopes: &str) -> Self {
        scopes.clone_into(&mut self.set().scopes);
        self
    }

    /// Sets all scopes of the resource for the metadata, separated by spaces. For resources where only some operations need certain
    /// scopes.
    #[must_use]
    pub fn scopes_supported(mut self, scopes: &str) -> Self {
        scopes.clone_into(&mut self.set().supported);
        self
    }

    /// Declares that a scope implies others, separated by spaces, and everything that those imply.
    #[must_use]
    pub fn scope_implies(mut self, scope: &str, implied: &str) -> Self {
        let settings = self.set();
        let hierarchy = std::mem::take(&mut settings.hierarchy);
        settings.hierarchy = hierarchy.implies(scope, implied.split_whitespace());
        self
    }

    /// Sets the seconds by which clocks may differ, 60 by default.
    #[must_use]
    pub fn clock_skew(mut self, seconds: u64) -> Self {
        self.set().clock_skew = seconds;
        self
    }

    /// Also accepts tokens that are bound to a key ([DPoP](https://www.rfc-editor.org/rfc/rfc9449)), so that a stolen token alone is useless.
    /// A proof can be used once on each node.
    #[must_use]
    pub fn dpop(mut self, proofs: ProofVerifier) -> Self {
        self.set().dpop = Some((proofs, false));
        self
    }

    /// Accepts only tokens that are bound to a key (DPoP).
    #[must_use]
    pub fn require_dpop(mut self, proofs: ProofVerifier) -> Self {
        self.set().dpop = Some((proofs, true));
        self
    }

    /// Sets the display name of the resource in the metadata.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.set().name = Some(name.into());
        self
    }

    /// Sets the URL of a page for developers in the metadata.
    #[must_use]
    pub fn documentation(mut self, url: impl Into<String>) -> Self {
        self.set().documentation = Some(url.into());
        self
    }

    /// Lets a user access, with any client, data that the user created with another client. For servers whose users register a new
    /// client with each login.
    #[must_use]
    pub fn owner_without_client(mut self) -> Self {
        self.set().is_owned_without_client = true;
        self
    }

    /// Shows callers only the items that their tokens permit. Listings omit items that need more scopes, and are private; a request
    /// for such an item is answered as if the item did not exist. By default listings contain everything, and a rejected call names
    /// the scopes that it needs, so that clients can ask for them. With this setting clients must learn the scopes elsewhere, such
    /// as from [`scopes_supported`](Self::scopes_supported).
    ///
    /// Over the 2024-11-05 transport, the token of the POST request counts, not the token that opened the stream.
    #[must_use]
    pub fn hide_unpermitted(mut self) -> Self {
        self.set().hides_unpermitted = true;
        self
    }

    /// Lets streams outlive the token that opened them, for clients that cannot reopen streams. By default the streams that clients
    /// listen to end with the token, and clients reopen them with a new token. Calls are never cut off, and a 2024-11-05 stream
    /// waits for calls in flight. If a token was introspected or has no expiry, its streams end after at most 10 minutes, so that
    /// the token is checked again.
    #[must_use]
    pub fn keep_streams(mut self) -> Self {
        self.set().keeps_streams = true;
        self
    }

    /// Sets the HTTP client for requests to issuers. The default client uses the system's settings.
    ///
    /// URLs from an issuer's metadata must not lead into this machine's network, and the default client connects only to checked
    /// addresses. Your own client connects freely: of such a URL, only the text is checked, which must be https. The same applies
    /// to a proxy from the system's settings.
    #[must_use]
    pub fn http_client(mut self, client: impl HttpClient) -> Self {
        self.set().client = Some(Arc::new(client));
        self
    }

    fn set(&mut self) -> &mut Settings {
        self.guard = Arc::default();
        Arc::make_mut(&mut self.settings)
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// If a setting is invalid: a URL that is not https (http is allowed for loopback), no issuer, or a duplicate issuer.
    pub fn check(&self) -> Result<()> {
        self.guard().map(drop)
    }

    /// Returns the paths at which clients look for the metadata: the path that challenges name, and the path for the whole host.
    /// Use the latter only if the host has no other protected resource.
    ///
    /// ```
    /// use oxmcp::http::ProtectedResource;
    ///
    /// let resource = ProtectedResource::new("https://mcp.example.com/mcp");
    /// assert_eq!(resource.metadata_paths(), [
    ///     "/.well-known/oauth-protected-resource/mcp",
    ///     "/.well-known/oauth-protected-resource",
    /// ]);
    /// ```
    #[must_use]
    pub fn metadata_paths(&self) -> Vec<String> {
        let urls = protected_resource_metadata_urls(&self.settings.url).unwrap_or_default();
        let uris = urls.iter().filter_map(|url| url.parse::<Uri>().ok());
        uris.map(|uri| uri.path().to_owned()).collect()
    }

    /// Rejects a token from now on, even if it is valid. Call it when you learn that the token was revoked. Other nodes are not
    /// notified, and open streams continue until they would end anyway: with the token, or after 10 minutes.
    ///
    /// # Errors
    /// If a setting is wrong.
    pub fn reject_token(&self, token: &Secret) -> Result<()> {
        self.guard()?.reject_token(token);
        Ok(())
    }

    /// Checks that clients may post messages to this path or URL, with the stream at the URL of the resource.
    ///
    /// # Errors
    /// If DPoP is enabled and messages are posted to another URL: proofs are for the URL of the resource.
    pub(crate) fn check_messages(&self, uri: &str) -> Result<()> {
        let url = &self.settings.url;
        let path = |url: &str| url.parse().map(|it: Uri| it.path().to_owned()).ok();
        let target = uri.split('?').next().unwrap_or_default();
        let is_same = target.is_empty()
            || target == url
            || target.starts_with('/') && path(url).is_some_and(|it| it == target);
        if is_same || self.settings.dpop.is_none() {
            return Ok(());
        }
        Err(Error::misuse(format!(
            "messages are posted to {uri}, but DPoP proofs are only valid for {url}: set `LegacySse::messages` to it"
        )))
    }

    /// Makes DPoP nonces with the keys that all nodes share, unless nonce keys were set.
    pub(crate) fn share_nonces(&self, keys: &SharedKeys) {
        let proofs = self.settings.dpop.as_ref().map(|(proofs, _)| proofs);
        if let Some(nonces) = proofs.and_then(ProofVerifier::nonce_keys) {
            let keys = keys.clone();
            nonces.share(move || keys.nonces());
        }
    }

    /// The accepted audiences of tokens: the URL, and the additional audiences.
    pub(crate) fn audiences(&self) -> impl Iterator<Item = &str> {
        let audiences = self.settings.audiences.iter();
        iter::once(&self.settings.url)
            .chain(audiences)
            .map(String::as_str)
    }

    /// Whether no token can have these scopes, according to [`scopes_supported`](Self::scopes_supported).
    pub(crate) fn lacks(&self, needed: &ScopeSet) -> bool {
        let settings = &self.settings;
        let supported = ScopeSet::parse(&settings.supported);
        let all = supported.union(&ScopeSet::parse(&settings.scopes));
        !supported.is_empty() && !settings.hierarchy.satisfies(&all, needed)
    }

    /// The guard of the endpoint.
    ///
    /// # Errors
    /// If a setting is wrong.
    pub(crate) fn guard(&self) -> Result<&Arc<Guard>> {
        let guard = self
            .guard
            .get_or_init(|| self.settings.guard().map(Arc::new));
        guard
            .as_ref()
            .map_err(|error| Error::misuse(format!("invalid protection settings: {error}")))
    }

    /// The deadline of a stream that an admitted request opens, or keeps open.
    pub(crate) fn stream_deadline(&self, parts: &Parts) -> Option<StreamDeadline> {
        let principal = parts.extensions.get()?;
        self.guard().ok()?.deadline(principal)
    }
}

impl Settings {
    fn guard(&self) -> Result<Guard, AuthError> {
        let audiences = iter::once(&self.url).chain(&self.audiences);
        let mut verifier = TokenVerifier::new(audiences)?.clock_skew(self.clock_skew);
        for issuer in &self.issuers {
            verifier = verifier.issuer(issuer.clone())?;
        }
        if let Some(introspection) = &self.introspection {
            verifier = verifier.introspection(introspection.clone());
        }
        let own = self
            .own
            .iter()
            .flat_map(|(_, issuers)| issuers.iter().map(String::as_str));
        let issuers: Vec<&str> = verifier.issuers().chain(own).collect();
        let mut resource = ResourceServer::new(&self.url, issuers)?
            .scopes(ScopeSet::parse_all(&self.scopes)?)
            .hierarchy(self.hierarchy.clone());
        let supported = ScopeSet::parse_all(&self.supported)?;
        if !supported.is_empty() {
            resource = resource.scopes_supported(&supported);
        }
        if let Some(name) = &self.name {
            resource = resource.name(name);
        }
        if let Some(url) = &self.documentation {
            resource = resource.documentation(url);
        }
        resource = match &self.dpop {
            None => resource,
            Some((proofs, false)) => resource.dpop(proofs.clone()),
            Some((proofs, true)) => resource.require_dpop(proofs.clone()),
        };
        let clients = match &self.client {
            Some(client) => Clients::Own(Arc::clone(client)),
            None => Clients::of(verifier.issuers()),
        };
        Ok(Guard {
            resource: Arc::new(resource),
            verifier,
            own: self.own.as_ref().map(|(verify, _)| Arc::clone(verify)),
            clients,
            is_owned_without_client: self.is_owned_without_client,
            hides_unpermitted: self.hides_unpermitted,
            stream_skew: (!self.keeps_streams).then_some(self.clock_skew),
            proofs: ReplayCache::default(),
            waiting: Waiting::new(),
        })
    }
}

opaque_debug!(ProtectedResource, |it| { url: it.settings.url });
