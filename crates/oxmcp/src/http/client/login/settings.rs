//! The settings of a login.

use std::{fmt, future::Future, sync::Arc};

use oxmcp_auth::{
    AuthorizationServerMetadata, ScopeSet,
    client::{Client, DiscoveryOptions, ResourceParameter, ScopeSelection, SubjectToken},
};

use crate::{
    error::{Error, Result},
    http::client::{
        login::{
            browser::{Browser, Opener, Prompt, ThisMachine},
            token_store::{DynTokenStore, MemoryTokenStore, TokenStore},
        },
        transport::http_client::{DynHttpClient, HttpClient},
    },
    session::{
        sealing::{KeyRing, StateKey},
        task::BoxFuture,
    },
};

/// A function that sends a user to a URL, and returns the URL that their browser was redirected to.
pub(crate) type SendPerson = Arc<dyn Fn(String) -> BoxFuture<Result<String>> + Send + Sync>;
type GetAssertion = Arc<dyn Fn(AssertionRequest) -> BoxFuture<Result<String>> + Send + Sync>;
type GetSubject = Arc<dyn Fn() -> BoxFuture<Result<SubjectToken>> + Send + Sync>;

/// The way in which tokens are obtained.
#[derive(Clone)]
pub(crate) enum Grant {
    /// The user consents in a browser; the answer arrives at this redirect URI.
    Redirect { uri: String, send: SendPerson },
    /// The user consents in a browser on this machine; the answer arrives at a listener on loopback.
    Loopback {
        port: Option<u16>,
        prompt: Arc<dyn Prompt>,
    },
    /// The user consents in a browser elsewhere: the login is begun and finished apart from requests, with this redirect
    /// URI.
    Begun { uri: String },
    /// No user can be asked: only stored logins are used.
    Stored,
    /// The client acts for itself.
    ClientCredentials,
    /// The platform that the program runs on attests the program's identity.
    Assertion(GetAssertion),
    /// An identity provider attests the user's identity.
    Enterprise {
        provider: Box<AuthorizationServerMetadata>,
        client: Client,
        subject: GetSubject,
    },
}

impl Grant {
    /// The advice if a user has to log in and a request cannot ask them; `None` if a request can, and if the grant asks no
    /// user.
    pub(crate) fn cannot_ask(&self) -> Option<&'static str> {
        match self {
            Self::Stored => Some(
                "log in with a program that can open a browser and uses the same store, or give this one its own credentials",
            ),
            Self::Begun { .. } => Some(
                "begin a login with this error (`Login::begin_after`), and send the user to its URL",
            ),
            _ => None,
        }
    }
}

/// The audience of an assertion, for the platform that a program runs on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AssertionRequest {
    /// The issuer of the authorization server.
    pub issuer: String,
    /// The token endpoint of the authorization server, which some servers want as the audience.
    pub token_endpoint: String,
    /// The resource identifier of the MCP server, if one is sent.
    pub resource: Option<String>,
}

/// The login of a client to a server that requires one.
///
/// The server names the authorization server. The login takes place when the first request is refused: the authorization server is
/// found and checked, the client is registered if necessary, and the user consents. Then the waiting requests are sent. Tokens are
/// refreshed before they expire; a request that lacks scopes asks for more.
///
/// ```no_run
/// use oxmcp::{Client, http::{Endpoint, Login}};
///
/// # async fn run() -> oxmcp::Result<()> {
/// let endpoint = Endpoint::new("https://example.com/mcp").login(Login::browser().client_name("My app"));
/// let session = Client::new("my-app", "1.0.0").connect(endpoint).await?;
/// # Ok(())
/// # }
/// ```
///
/// See [authorization](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization).
#[derive(Clone)]
#[must_use = "an endpoint logs in with it"]
pub struct Login {
    pub(crate) grant: Grant,
    pub(crate) client_name: String,
    pub(crate) clients: Vec<Client>,
    pub(crate) document: Option<Client>,
    pub(crate) discovery: DiscoveryOptions,
    pub(crate) scopes: ScopeSelection,
    pub(crate) uses_dpop: bool,
    pub(crate) user: String,
    pub(crate) store: Arc<dyn DynTokenStore>,
    pub(crate) trusted_hosts: Vec<String>,
    pub(crate) http_client: Option<Arc<dyn DynHttpClient>>,
    /// The keys that seal the attempts of [`begin`](Self::begin).
    pub(crate) keys: Arc<KeyRing>,
}

impl Login {
    fn new(grant: Grant) -> Self {
        Self {
            grant,
            client_name: "oxmcp".to_owned(),
            clients: Vec::new(),
            document: None,
            discovery: DiscoveryOptions::default(),
            scopes: ScopeSelection::default(),
            uses_dpop: false,
            user: String::new(),
            store: Arc::new(MemoryTokenStore::new()),
            trusted_hosts: Vec::new(),
            http_client: None,
            keys: Arc::default(),
        }
    }

    /// Creates a login in which the user consents in a browser that your program shows: `send` receives the URL of the page, and
    /// returns the whole URL that the browser was redirected to, which begins with `redirect_uri`. The returned URL is checked.
    pub fn with_redirect<F>(
        redirect_uri: impl Into<String>,
        send: impl Fn(String) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<String>> + Send + 'static,
    {
        Self::new(Grant::Redirect {
            uri: redirect_uri.into(),
            send: Arc::new(move |url| Box::pin(send(url))),
        })
    }

    /// Creates a login that opens the browser of this machine, in which the user consents; the answer arrives at a
    /// listener on 127.0.0.1, which exists for this one login, and for 10 minutes at most.
    ///
    /// The URL of the page is written to standard error, too, for another browser. If standard input is a terminal (not on
    /// Windows), the address at which such a browser ended can be pasted there, which is necessary for a login over SSH. Lines are
    /// read only while a login waits, and only if standard input is a terminal.
    ///
    /// If there is neither a browser to open nor a terminal that shows the URL, as in a CI job, requests fail at once with
    /// [`interaction_required`](oxmcp_auth::AuthError::interaction_required). The variable `BROWSER` names the program that opens
    /// pages, if the system does not know one.
    ///
    /// ```no_run
    /// use oxmcp::{Client, http::{Endpoint, Login}};
    ///
    /// # async fn run() -> oxmcp::Result<()> {
    /// let endpoint = Endpoint::new("https://example.com/mcp").login(Login::browser().client_name("My app"));
    /// let session = Client::new("my-app", "1.0.0").connect(endpoint).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// See [authorization flow steps](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization#authorization-flow-steps).
    pub fn browser() -> Self {
        Self::new(Grant::Loopback {
            port: None,
            prompt: Arc::new(Browser::new(ThisMachine)),
        })
    }

    /// Creates a login like [`browser`](Self::browser), with your own opener: `open` shows the URL to the user, in a browser
    /// that it starts or as a text. The answer arrives at a listener on 127.0.0.1, which exists for this one login, and for 10
    /// minutes at most.
    ///
    /// Never pass the URL to a shell: it comes from the server. Its scheme is https, or its host is loopback.
    pub fn with_loopback<F>(open: impl Fn(String) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        Self::new(Grant::Loopback {
            port: None,
            prompt: Arc::new(Opener(move |url| -> BoxFuture<Result<()>> {
                Box::pin(open(url))
            })),
        })
    }

    /// Creates a login in which the user consents in a browser elsewhere, such as that of a web back end's user:
    /// [`begin`](Self::begin) returns the page to send the user to, and [`finish`](Self::finish) takes the URL that arrives at
    /// `redirect_uri`, in any process that has the same [`store`](Self::store) and the same [`keys`](Self::keys). An
    /// [`Endpoint`](crate::http::Endpoint) uses the stored login, refreshes it, and asks no user: without a login, or if the
    /// login lacks scopes, requests fail with
    /// [`is_interaction_required`](crate::Error::is_interaction_required).
    ///
    /// ```no_run
    /// use oxmcp::{Client, Result, http::{Endpoint, Login}};
    ///
    /// const SERVER: &str = "https://mcp.example/mcp";
    ///
    /// /// The URL to send the user to, and the state to keep until they return: in a cookie, or with their session.
    /// async fn connect(login: &Login) -> Result<(String, String)> {
    ///     let attempt = login.begin(SERVER).await?;
    ///     Ok((attempt.url().to_owned(), attempt.sealed().to_owned()))
    /// }
    ///
    /// /// The route of the redirect URI.
    /// async fn callback(login: &Login, kept: &str, url: &str) -> Result<()> {
    ///     login.finish(kept, url).await
    /// }
    ///
    /// async fn list(login: &Login) -> Result<()> {
    ///     let endpoint = Endpoint::new(SERVER).login(login.clone());
    ///     let session = Client::new("my-app", "1.0.0").connect(endpoint).await?;
    ///     session.close().await
    /// }
    ///
    /// // One login for all users; each request uses a clone for its user.
    /// let login = Login::redirect("https://app.example/callback").client_name("My app");
    /// let of_ann = login.clone().user("ann");
    /// # let _ = of_ann;
    /// ```
    pub fn redirect(redirect_uri: impl Into<String>) -> Self {
        Self::new(Grant::Begun {
            uri: redirect_uri.into(),
        })
    }

    /// Creates a login without a user: the credentials in the [`store`](Self::store) are used and refreshed, and without them
    /// requests fail at once.
    pub fn non_interactive() -> Self {
        Self::new(Grant::Stored)
    }

    /// Creates a login in which the client acts for itself, with a secret or a key, at the authorization server that it is
    /// [`issued_by`](oxmcp_auth::client::Client::issued_by).
    ///
    /// ```
    /// use oxmcp::{auth::client::Client, http::{Endpoint, Login}};
    ///
    /// let client = Client::new("my-service")?.with_secret("hunter2").issued_by("https://as.example");
    /// let endpoint = Endpoint::new("https://example.com/mcp").login(Login::client_credentials(client));
    /// # let _ = endpoint;
    /// # Ok::<(), oxmcp::auth::AuthError>(())
    /// ```
    ///
    /// See [OAuth Client Credentials](https://modelcontextprotocol.io/extensions/auth/oauth-client-credentials).
    pub fn client_credentials(client: Client) -> Self {
        Self::new(Grant::ClientCredentials).client(client)
    }

    /// Creates a login in which the platform that the program runs on attests its identity: `assertion` returns a signed JWT
    /// each time that tokens are obtained.
    pub fn assertion<F>(assertion: impl Fn(AssertionRequest) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<String>> + Send + 'static,
    {
        let get: GetAssertion = Arc::new(move |request| Box::pin(assertion(request)));
        Self::new(Grant::Assertion(get))
    }

    /// Creates a login in which the identity provider of an enterprise attests the user's identity, and decides what they may
    /// use: `subject` returns the token with which the user is logged in there. `provider` needs its issuer and its token
    /// endpoint, and is trusted; `client` is the client at the provider. The client at the MCP server's authorization server is
    /// [`client`](Self::client).
    ///
    /// See [Enterprise-Managed Authorization](https://modelcontextprotocol.io/extensions/auth/enterprise-managed-authorization).
    pub fn enterprise<F>(
        provider: AuthorizationServerMetadata,
        client: Client,
        subject: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<SubjectToken>> + Send + 'static,
    {
        Self::new(Grant::Enterprise {
            provider: Box::new(provider),
            client,
            subject: Arc::new(move || Box::pin(subject())),
        })
    }

    /// Adds a client that is registered at an authorization server. Name that server with
    /// [`issued_by`](oxmcp_auth::client::Client::issued_by): the client's secret is sent to no other server. A client with a
    /// secret or a key needs that, or [`issuer`](Self::issuer); otherwise connecting fails.
    pub fn client(mut self, client: Client) -> Self {
        self.clients.push(client);
        self
    }

    /// Refuses a client with a secret or a key whose authorization server is not configured.
    pub(crate) fn check_clients(&self) -> Result<()> {
        let is_homeless = |it: &&Client| it.is_confidential() && it.issuer().is_none();
        let mut clients = self.clients.iter().chain(&self.document);
        let homeless = clients.find(is_homeless);
        match homeless.filter(|_| self.discovery.issuer.is_none()) {
            None => Ok(()),
            Some(client) => Err(Error::misuse(format!(
                "the client {:?} has a secret or a key, but no authorization server; name it with `Client::issued_by` or \
                 `Login::issuer`, so that no other server gets the secret",
                client.id()
            ))),
        }
    }

    /// Whether a client was configured, and not registered by a login.
    pub(crate) fn is_configured(&self, client: &Client) -> bool {
        let mut clients = self.clients.iter().chain(&self.document);
        clients.any(|it| it.id() == client.id())
    }

    /// Sets a client whose id is the URL of its metadata, for authorization servers that support such ids:
    /// [`Client::from_document_url`](oxmcp_auth::client::Client::from_document_url).
    pub fn client_document(mut self, client: Client) -> Self {
        self.document = Some(client);
        self
    }

    /// Sets the name that people see when they agree, if the client is registered when it is first used.
    pub fn client_name(mut self, name: impl Into<String>) -> Self {
        self.client_name = name.into();
        self
    }

    /// Sets the port of the listener on 127.0.0.1, for clients that are registered with one. Default: any free port.
    pub fn port(mut self, port: u16) -> Self {
        if let Grant::Loopback { port: own, .. } = &mut self.grant {
            *own = Some(port);
        }
        self
    }

    /// Sets the scopes to ask for, separated by spaces, instead of those that the server names.
    pub fn scopes(mut self, scopes: &str) -> Self {
        self.scopes.fixed = Some(ScopeSet::parse(scopes));
        self
    }

    /// Does not ask for `offline_access`, even if the authorization server offers it.
    pub fn without_offline_access(mut self) -> Self {
        self.scopes.without_offline_access = true;
        self
    }

    /// Sets the exact issuer of the authorization server, instead of the one that the server names.
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.discovery.issuer = Some(issuer.into());
        self
    }

    /// Sets the `resource` to send to the authorization server, instead of the one that the server names.
    pub fn resource(mut self, resource: impl Into<String>) -> Self {
        self.discovery.resource = ResourceParameter::Fixed(resource.into());
        self
    }

    /// Sends no `resource`: for authorization servers that refuse it.
    pub fn without_resource(mut self) -> Self {
        self.discovery.resource = ResourceParameter::Omitted;
        self
    }

    /// Disables the rules of revision 2025-03-26: an authorization server at the MCP server's own origin, if no metadata names one.
    pub fn without_default_endpoints(mut self) -> Self {
        self.discovery.without_default_endpoints = true;
        self
    }

    /// Treats the authorization server's metadata as if they stated support for PKCE with S256, if they do not mention PKCE:
    /// Microsoft Entra ID supports it, and does not state so. Without this setting, users are not sent there.
    pub fn assume_pkce(mut self) -> Self {
        self.discovery.assume_pkce = true;
        self
    }

    /// Binds tokens to a key of this login (DPoP), and refuses others. Without this setting, tokens are bound if the server demands
    /// it.
    pub fn dpop(mut self) -> Self {
        self.uses_dpop = true;
        self
    }

    /// Sets the user that logs in, in a program that has several: users share the registered client, but neither tokens nor
    /// keys. Default: the empty name.
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = user.into();
        self
    }

    /// Sets the store in which credentials are kept. Default: in memory, only for this endpoint.
    ///
    /// | store | for |
    /// |---|---|
    /// | [`MemoryTokenStore`] | tests, and programs without user logins: client credentials, assertions |
    /// | [`FileTokenStore`](crate::http::FileTokenStore) | command lines and services: logins outlive the program, and processes share them |
    /// | `KeyringTokenStore` (feature `keyring`) | programs of a desktop, where files are copied and backed up |
    /// | your own [`TokenStore`] | servers of many users or on many machines: a database that they have already |
    pub fn store(mut self, store: impl TokenStore) -> Self {
        self.store = Arc::new(store);
        self
    }

    /// Sets the keys that seal the attempts of [`begin`](Self::begin): the first one seals, and all of them open. By default
    /// the login and its clones have their own key; processes that finish each other's logins need the same keys.
    ///
    /// ```
    /// use oxmcp::{http::Login, keys::StateKey};
    ///
    /// # fn main() -> oxmcp::Result<()> {
    /// # let text = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=";
    /// // let text = std::env::var("STATE_KEY")?;
    /// let login = Login::redirect("https://app.example/callback").keys([StateKey::from_base64(text)?]);
    /// # let _ = login;
    /// # Ok(())
    /// # }
    /// ```
    pub fn keys(mut self, keys: impl IntoIterator<Item = StateKey>) -> Self {
        self.keys = Arc::new(KeyRing::new(keys.into_iter().collect()));
        self
    }

    /// Sends the login's requests to other servers, such as the authorization server, through this client. By default they are sent
    /// by a separate client, with the certificates and the proxies of the system, whatever the [endpoint's
    /// client](crate::http::Endpoint::http_client) is.
    ///
    /// The URLs come from the server, and must not lead into the network of this machine. The login's own client connects only to
    /// addresses that were checked. Your client resolves names by itself, so only the spelling of a URL is checked: https, and an
    /// allowed address, if the host is an address. The same applies to a proxy that the system names.
    pub fn http_client(mut self, client: impl HttpClient) -> Self {
        self.http_client = Some(Arc::new(client));
        self
    }

    /// Allows connections to a host with a private address. Without this, the URLs that a server names may lead only to public
    /// addresses; also to private ones if the server's own addresses are all private, and to loopback if its URL names
    /// loopback.
    pub fn trust_host(mut self, host: impl Into<String>) -> Self {
        self.trusted_hosts.push(host.into());
        self
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let grant = match &self.grant {
            Grant::Redirect { .. } => "redirect",
            Grant::Loopback { .. } => "loopback",
            Grant::Begun { .. } => "begun",
            Grant::Stored => "non-interactive",
            Grant::ClientCredentials => "client credentials",
            Grant::Assertion(_) => "assertion",
            Grant::Enterprise { .. } => "enterprise",
        };
        f.debug_struct("Login")
            .field("grant", &grant)
            .field("clients", &self.clients)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}
