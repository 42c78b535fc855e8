//! A login, as users configure it.

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

/// Sends a person to a URL, and gives the URL that their browser was redirected to.
pub(super) type SendPerson = Arc<dyn Fn(String) -> BoxFuture<Result<String>> + Send + Sync>;
type GetAssertion = Arc<dyn Fn(AssertionRequest) -> BoxFuture<Result<String>> + Send + Sync>;
type GetSubject = Arc<dyn Fn() -> BoxFuture<Result<SubjectToken>> + Send + Sync>;

/// How tokens are got.
#[derive(Clone)]
pub(super) enum Grant {
    /// A person agrees, in a browser; the answer comes to this redirect URI.
    Redirect { uri: String, send: SendPerson },
    /// A person agrees, in a browser on this machine; the answer comes to a listener on loopback.
    Loopback {
        port: Option<u16>,
        prompt: Arc<dyn Prompt>,
    },
    /// A person agrees, in a browser that is elsewhere: the login is begun and finished apart from requests, with this redirect
    /// URI.
    Begun { uri: String },
    /// Nobody can be asked.
    Stored,
    /// The client acts for itself.
    ClientCredentials,
    /// The platform that the program runs on says who it is.
    Assertion(GetAssertion),
    /// An identity provider says who the person is.
    Enterprise {
        provider: Box<AuthorizationServerMetadata>,
        client: Client,
        subject: GetSubject,
    },
}

impl Grant {
    /// What is to be done where somebody has to log in and a request cannot ask them; `None` where it can, and where a login asks
    /// nobody.
    pub(super) fn cannot_ask(&self) -> Option<&'static str> {
        match self {
            Self::Stored => Some(
                "log in by a program that can show a browser, with the same store, or give this one credentials of its own",
            ),
            Self::Begun { .. } => Some(
                "begin a login with this error (Login::begin_after), and send the user to its URL",
            ),
            _ => None,
        }
    }
}

/// Whom an assertion is for: what is asked of the platform that a program runs on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AssertionRequest {
    /// The issuer of the authorization server.
    pub issuer: String,
    /// Its token endpoint, which some servers want as the audience.
    pub token_endpoint: String,
    /// The MCP server.
    pub resource: Option<String>,
}

/// How a client logs in to a server that wants it to.
///
/// The server says who gives tokens for it. What has to be done there is done when the first request is refused: the
/// authorization server is found and checked, the client is registered if need be, and somebody agrees. Then the requests that
/// waited are sent. Tokens are refreshed before they end; a request that lacks scopes asks for more.
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
    pub(super) grant: Grant,
    pub(super) client_name: String,
    pub(super) clients: Vec<Client>,
    pub(super) document: Option<Client>,
    pub(super) discovery: DiscoveryOptions,
    pub(super) scopes: ScopeSelection,
    pub(super) uses_dpop: bool,
    pub(super) user: String,
    pub(super) store: Arc<dyn DynTokenStore>,
    pub(super) trusted_hosts: Vec<String>,
    pub(super) http_client: Option<Arc<dyn DynHttpClient>>,
    /// What seals the attempts that are begun.
    pub(super) keys: Arc<KeyRing>,
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

    /// A person agrees in a browser that your program shows: `send` gets the URL of the page, and returns the whole URL that the
    /// browser was redirected to, which begins with `redirect_uri`. What comes there is checked.
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

    /// A person agrees in the browser of this machine, which is opened; the answer comes to a listener on 127.0.0.1, which is there
    /// for this one login and 10 minutes at most.
    ///
    /// The URL of the page is written to standard error, too, for another browser. Where standard input is a terminal (not on
    /// Windows), the address that such a browser ended at can be pasted there, which is what a login over SSH needs. Lines are read
    /// while a login waits and at no other time, and nothing is read where standard input is no terminal.
    ///
    /// Where there is neither a browser to open nor a terminal that shows the URL, as in a CI job, requests fail at once with
    /// [`interaction_required`](oxmcp_auth::AuthError::interaction_required). The variable `BROWSER` names the program that opens
    /// pages, where the system does not know one.
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

    /// As [`browser`](Self::browser), with an opener of your own: `open` shows them the URL, by a browser that it starts or as a text, and the
    /// answer comes to a listener on 127.0.0.1, which is there for this one login and 10 minutes at most.
    ///
    /// Never hand the URL to a shell: it comes from the server. It is https, or loopback.
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

    /// A person agrees in a browser that is elsewhere, as that of a web back end's user: [`begin`](Self::begin) gives the page to
    /// send them to, and [`finish`](Self::finish) takes what comes to `redirect_uri`, in any process that has the same
    /// [`store`](Self::store) and the same [`keys`](Self::keys). An [`Endpoint`](crate::http::Endpoint) uses what is stored, refreshes
    /// it, and asks nobody: without a login, or where it lacks scopes, requests fail with
    /// [`is_interaction_required`](crate::Error::is_interaction_required).
    ///
    /// ```no_run
    /// use oxmcp::{Client, Result, http::{Endpoint, Login}};
    ///
    /// const SERVER: &str = "https://mcp.example/mcp";
    ///
    /// /// Where the user is sent, and what is kept until they come back: in a cookie, or beside their session.
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
    /// // One for all users, and of it one for each request.
    /// let login = Login::redirect("https://app.example/callback").client_name("My app");
    /// let of_ann = login.clone().user("ann");
    /// # let _ = of_ann;
    /// ```
    pub fn redirect(redirect_uri: impl Into<String>) -> Self {
        Self::new(Grant::Begun {
            uri: redirect_uri.into(),
        })
    }

    /// Nobody can be asked: what is in the [`store`](Self::store) is used and refreshed, and without it requests fail at once.
    pub fn non_interactive() -> Self {
        Self::new(Grant::Stored)
    }

    /// The client acts for itself, by a secret or a key, at the authorization server that it is
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

    /// The platform that the program runs on says who it is: `assertion` gives a signed JWT each time that tokens are got.
    pub fn assertion<F>(assertion: impl Fn(AssertionRequest) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<String>> + Send + 'static,
    {
        let get: GetAssertion = Arc::new(move |request| Box::pin(assertion(request)));
        Self::new(Grant::Assertion(get))
    }

    /// The identity provider of an enterprise says who the person is, and decides what they may use: `subject` gives what the
    /// person logged in with there. `provider` needs its issuer and its token endpoint, and is trusted; `client` is the client
    /// there. The client at the MCP server's authorization server is [`client`](Self::client).
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

    /// A client that is registered at an authorization server. Say at which, by
    /// [`issued_by`](oxmcp_auth::client::Client::issued_by): its secret is sent nowhere else. With a secret or a key it needs that,
    /// or [`issuer`](Self::issuer): connecting fails without.
    pub fn client(mut self, client: Client) -> Self {
        self.clients.push(client);
        self
    }

    /// Refuses a client with a secret or a key of which nothing says where it may go.
    pub(super) fn check_clients(&self) -> Result<()> {
        let is_homeless = |it: &&Client| it.is_confidential() && it.issuer().is_none();
        let mut clients = self.clients.iter().chain(&self.document);
        let homeless = clients.find(is_homeless);
        match homeless.filter(|_| self.discovery.issuer.is_none()) {
            None => Ok(()),
            Some(client) => Err(Error::misuse(format!(
                "the client {:?} has a secret or a key, and nothing says which authorization server it belongs to: say it by \
                 Client::issued_by or by Login::issuer, so that no other server that the MCP server names can get it",
                client.id()
            ))),
        }
    }

    /// Whether a client was configured, and not registered by a login.
    pub(super) fn is_configured(&self, client: &Client) -> bool {
        let mut clients = self.clients.iter().chain(&self.document);
        clients.any(|it| it.id() == client.id())
    }

    /// A client whose id is the URL of its metadata, where the authorization server takes such:
    /// [`Client::from_document_url`](oxmcp_auth::client::Client::from_document_url).
    pub fn client_document(mut self, client: Client) -> Self {
        self.document = Some(client);
        self
    }

    /// The name that people see when they agree, if the client is registered when it is first used.
    pub fn client_name(mut self, name: impl Into<String>) -> Self {
        self.client_name = name.into();
        self
    }

    /// The port of the listener on 127.0.0.1, for clients that are registered with one. Default: any.
    pub fn port(mut self, port: u16) -> Self {
        if let Grant::Loopback { port: own, .. } = &mut self.grant {
            *own = Some(port);
        }
        self
    }

    /// The scopes to ask for, with spaces between them, instead of what the server says.
    pub fn scopes(mut self, scopes: &str) -> Self {
        self.scopes.fixed = Some(ScopeSet::parse(scopes));
        self
    }

    /// `offline_access` is not asked for, although the authorization server offers it.
    pub fn without_offline_access(mut self) -> Self {
        self.scopes.without_offline_access = true;
        self
    }

    /// The issuer of the authorization server, letter by letter, where you know it better than the server says it.
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.discovery.issuer = Some(issuer.into());
        self
    }

    /// The `resource` to send to the authorization server, instead of what the server says.
    pub fn resource(mut self, resource: impl Into<String>) -> Self {
        self.discovery.resource = ResourceParameter::Fixed(resource.into());
        self
    }

    /// No `resource` is sent: for authorization servers that refuse it.
    pub fn without_resource(mut self) -> Self {
        self.discovery.resource = ResourceParameter::Omitted;
        self
    }

    /// The rules of revision 2025-03-26 are not used: an authorization server at the MCP server's own origin, where nothing is
    /// said anywhere.
    pub fn without_default_endpoints(mut self) -> Self {
        self.discovery.without_default_endpoints = true;
        self
    }

    /// Takes the authorization server's metadata as if they said that it supports PKCE with S256, where they say nothing of PKCE:
    /// Microsoft Entra ID supports it, and does not say so. Without this nobody is sent there.
    pub fn assume_pkce(mut self) -> Self {
        self.discovery.assume_pkce = true;
        self
    }

    /// Tokens are bound to a key of this login (DPoP), and others refused. Without this they are where the server demands it.
    pub fn dpop(mut self) -> Self {
        self.uses_dpop = true;
        self
    }

    /// The user that logs in, in a program that has several: they share nothing. Default: the empty name.
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = user.into();
        self
    }

    /// Where credentials are kept. Default: in memory, for this endpoint alone.
    ///
    /// | store | for |
    /// |---|---|
    /// | [`MemoryTokenStore`] | tests, and programs that nobody logs in to: client credentials, assertions |
    /// | [`FileTokenStore`](crate::http::FileTokenStore) | command lines and services: logins outlive the program, and processes share them |
    /// | `KeyringTokenStore` (feature `keyring`) | programs of a desktop, where files are copied and backed up |
    /// | a [`TokenStore`] of yours | servers of many users or on many machines: a database that they have already |
    pub fn store(mut self, store: impl TokenStore) -> Self {
        self.store = Arc::new(store);
        self
    }

    /// The keys that seal what [`begin`](Self::begin) gives: the first one seals, and all of them open. By default the login and its
    /// clones have a key of their own; processes that finish each other's logins need the same keys.
    ///
    /// ```
    /// use oxmcp::{StateKey, http::Login};
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

    /// Sends what the login asks of others, as of the authorization server, through this client. Without this a client of its own
    /// does, with the certificates and the proxies of the system, whatever the
    /// [endpoint's client](crate::http::Endpoint::http_client) is.
    ///
    /// The URLs come from the server, and must not lead into the network of this machine. The login's own client connects to addresses
    /// alone that were checked. Yours resolves names by itself, so that of a URL only the spelling is checked: https, and an
    /// address that may be asked, where the host is an address. A proxy that the system names does so, too.
    pub fn http_client(mut self, client: impl HttpClient) -> Self {
        self.http_client = Some(Arc::new(client));
        self
    }

    /// A host that may be asked although its address is private. Without this the URLs that a server names lead to public addresses
    /// alone; and to private ones where the server's own addresses are all private, to loopback where its URL says loopback.
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
