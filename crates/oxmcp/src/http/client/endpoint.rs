//! [`Endpoint`]: the URL of a server, as a transport.

use std::{fmt, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue, header::AUTHORIZATION};
use url::Url;

use crate::{
    error::{Error, Result},
    http::client::{
        exchange::{
            executor::Executor,
            requests::{RequestSender, Target},
            shared::Exchanges,
        },
        halves::{EndpointReader, EndpointWriter, halves},
        reconnect::retry::Reconnect,
        redaction::{fingerprint, redacted_url},
        transport::{
            default_client::DefaultClient,
            http_client::{DynHttpClient, HttpClient},
            with_token::{TokenSource, WithToken},
        },
    },
    limits::Limits,
    transport::{mirror::HeaderMirror, traits::Transport},
};
#[cfg(feature = "auth")]
use crate::{
    http::client::login::{AuthorizedClient, Authorizer, DynAuthorizer, Login, LoginEngine},
    transport::traits::{CurrentLogin, UserWaits},
};

/// A server at a URL, to which a [`Client`](crate::Client) connects.
///
/// All HTTP transports of the protocol are supported: a modern server receives each request by itself, a legacy server has its
/// session, its streams and their resumption, and a server of 2024-11-05 is detected if it refuses the others. Interrupted
/// streams are resumed, and a session that the server has lost is replaced, with its subscriptions. A call that could then take
/// effect twice fails with an error that says so.
///
/// ```no_run
/// use oxmcp::{Client, http::Endpoint};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> oxmcp::Result<()> {
/// let endpoint = Endpoint::new("https://example.com/mcp").bearer_token("…");
/// let session = Client::new("my-app", "1.0.0").connect(endpoint).await?;
/// println!("{:?}", session.server_info());
/// # Ok(())
/// # }
/// ```
///
/// Redirects are followed only within the server's origin: the requests are meant for that server.
///
/// A server with `https` is trusted if the system trusts the issuer of its certificate. If the system keeps certificates in
/// files, as Linux does, the variables `SSL_CERT_FILE` and `SSL_CERT_DIR` can name other ones: for a server whose certificate
/// was issued by your own CA. `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, or the settings of the system, name the
/// proxies, which speak HTTP (`http://`, `https://`) or SOCKS 5 (`socks5://`, or `socks5h://` for proxies that resolve more
/// names than this system). For anything else, set an [`http_client`](Self::http_client).
///
/// See [streamable HTTP](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http).
#[must_use = "a client connects to it"]
pub struct Endpoint {
    url: Option<Url>,
    headers: HeaderMap,
    client: Option<Arc<dyn DynHttpClient>>,
    /// Whether the user has set the client.
    own_client: bool,
    /// The source of the token for each request.
    token: Option<TokenSource>,
    /// The login, until the endpoint connects.
    #[cfg(feature = "auth")]
    login: Option<Login>,
    /// The authorizer of each request.
    #[cfg(feature = "auth")]
    authorizer: Option<Arc<dyn DynAuthorizer>>,
    no_standalone_stream: bool,
    reconnect: Reconnect,
    only_2024: bool,
    max_message: Option<usize>,
    mirror: HeaderMirror,
    /// The first mistake in the settings, which connecting reports.
    problem: Option<String>,
}

impl Endpoint {
    /// Creates an endpoint for a URL with `http` or `https`. For an invalid URL, connecting returns an error.
    ///
    /// A user name and a password in the URL are sent as `Authorization: Basic …`.
    pub fn new(url: impl AsRef<str>) -> Self {
        let mut endpoint = Self {
            url: None,
            headers: HeaderMap::new(),
            client: None,
            own_client: false,
            token: None,
            #[cfg(feature = "auth")]
            login: None,
            #[cfg(feature = "auth")]
            authorizer: None,
            no_standalone_stream: false,
            reconnect: Reconnect::default(),
            only_2024: false,
            max_message: None,
            mirror: HeaderMirror::new(),
            problem: None,
        };
        match read_url(url.as_ref()) {
            Ok((url, credentials)) => {
                endpoint.url = Some(url);
                endpoint
                    .headers
                    .extend(credentials.map(|it| (AUTHORIZATION, it)));
            }
            Err(problem) => endpoint.problem = Some(problem),
        }
        endpoint
    }

    /// Creates an endpoint for a server that speaks the transport of 2024-11-05, at the URL of its event stream, which often
    /// ends with `/sse`. [`new`](Self::new) detects this transport automatically, at the cost of some additional requests.
    /// See [HTTP with SSE](https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse).
    pub fn sse_2024(url: impl AsRef<str>) -> Self {
        Self {
            only_2024: true,
            ..Self::new(url)
        }
    }

    /// Adds a header to every request. The headers of the protocol itself cannot be changed.
    pub fn header(mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        let name = name.as_ref();
        let parsed = (
            name.parse::<HeaderName>(),
            HeaderValue::from_str(value.as_ref()),
        );
        match parsed {
            (Ok(name), Ok(mut value)) => {
                value.set_sensitive(true);
                self.headers.insert(name, value);
            }
            (Err(_), _) => self.report(format!("invalid header name {name:?}")),
            // The value may be secret.
            (_, Err(_)) => self.report(format!("invalid value for header `{name}`")),
        }
        self
    }

    /// Sets the token that the server requires: `Authorization: Bearer …`. For a token that changes, use
    /// [`bearer_token_from`](Self::bearer_token_from).
    pub fn bearer_token(self, token: impl AsRef<str>) -> Self {
        self.header(AUTHORIZATION, format!("Bearer {}", token.as_ref()))
    }

    /// Sets a source of tokens that may change: `token` is called before every request, and should cache its token. A request for
    /// which it returns an error is not sent, and fails with that error.
    ///
    /// ```
    /// use oxmcp::http::Endpoint;
    ///
    /// let endpoint = Endpoint::new("https://example.com/mcp").bearer_token_from(|| async {
    ///     tokio::fs::read_to_string("/run/secrets/token").await.map_err(oxmcp::Error::from)
    /// });
    /// # let _ = endpoint;
    /// ```
    pub fn bearer_token_from<F>(mut self, token: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<String>> + Send + 'static,
    {
        self.token = Some(Arc::new(move || Box::pin(token())));
        self.check_token_sources();
        self
    }

    /// Logs in if the server requires it. The login is kept for later connections.
    ///
    /// See [authorization](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization).
    #[cfg(feature = "auth")]
    pub fn login(mut self, login: Login) -> Self {
        self.login = Some(login);
        self.check_token_sources();
        self
    }

    /// Authorizes each request with your own [`Authorizer`], for tokens that your program manages.
    #[cfg(feature = "auth")]
    pub fn authorizer(mut self, authorizer: impl Authorizer) -> Self {
        self.authorizer = Some(Arc::new(authorizer));
        self.check_token_sources();
        self
    }

    /// Sets whether a session with a legacy server keeps a GET stream open, for messages that belong to no request:
    /// notifications, and unrelated requests of the server. Default: `true`. Without it such messages do not arrive.
    /// See [listening](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#listening-for-messages-from-the-server).
    pub fn standalone_stream(mut self, open: bool) -> Self {
        self.no_standalone_stream = !open;
        self
    }

    /// Sends all requests to the server through this client. To wrap the default client, use [`DefaultClient`]. The requests of
    /// a [`login`](Self::login) to other servers use another client, which
    /// [`Login::http_client`](crate::http::Login::http_client) changes.
    pub fn http_client(mut self, client: impl HttpClient) -> Self {
        self.client = Some(Arc::new(client));
        self.own_client = true;
        self
    }

    /// Sets how interrupted streams are resumed.
    pub fn reconnect(mut self, reconnect: Reconnect) -> Self {
        self.reconnect = reconnect;
        self
    }

    /// Sets the maximum length of a message from the server, in bytes. Default:
    /// [`Limits::max_message_bytes`](crate::Limits::max_message_bytes) of the client.
    pub fn max_message_bytes(mut self, bytes: usize) -> Self {
        self.max_message = Some(bytes);
        self
    }

    /// The client with the authorizer of its requests, if there is one.
    #[cfg(feature = "auth")]
    fn authorized(
        &mut self,
        client: Arc<dyn DynHttpClient>,
        url: &Url,
    ) -> Result<Arc<dyn DynHttpClient>> {
        if let Some(login) = self.login.clone() {
            let engine =
                LoginEngine::new(url, login, self.own_authorization(), self.mirror.clone())?;
            self.authorizer = Some(Arc::new(engine));
            self.login = None;
        }
        Ok(match &self.authorizer {
            Some(authorizer) => Arc::new(AuthorizedClient::new(client, Arc::clone(authorizer))),
            None => client,
        })
    }

    /// The identity of the credentials of requests without a token: the headers, and the user's client. `None` if the identity of
    /// the client is not known.
    fn own_authorization(&self) -> Option<String> {
        let client = match &self.client {
            Some(client) if self.own_client => client.authorization()?,
            _ => String::new(),
        };
        let headers = self.headers.iter();
        let headers =
            headers.flat_map(|(name, value)| [name.as_str().as_bytes(), value.as_bytes()]);
        Some(fingerprint([client.as_bytes()].into_iter().chain(headers)))
    }

    /// Reports a problem if there is more than one source of tokens, because each would replace the token of another.
    fn check_token_sources(&mut self) {
        #[cfg(feature = "auth")]
        if [
            self.token.is_some(),
            self.login.is_some(),
            self.authorizer.is_some(),
        ]
        .into_iter()
        .filter(|is_given| *is_given)
        .count()
            > 1
        {
            let text = "more than one token source; use only one of `bearer_token_from`, `login` and `authorizer`";
            self.report(text.to_owned());
        }
    }

    fn report(&mut self, problem: String) {
        self.problem.get_or_insert(problem);
    }
}

/// Parses a URL. The credentials in it are returned as a separate header.
fn read_url(text: &str) -> Result<(Url, Option<HeaderValue>), String> {
    let mut url = match Url::parse(text) {
        Ok(url) if url.scheme().contains('.') || !text.contains("://") => {
            return Err(no_scheme(text));
        }
        Ok(url) => url,
        Err(url::ParseError::RelativeUrlWithoutBase) => return Err(no_scheme(text)),
        Err(error) => return Err(format!("invalid URL: {error}")),
    };
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!(
            "the URL must begin with http:// or https://, not with {}:",
            url.scheme()
        ));
    }
    url.set_fragment(None);
    let password = url.password().unwrap_or_default();
    let credentials = if url.username().is_empty() && password.is_empty() {
        None
    } else {
        let pair = format!("{}:{password}", url.username());
        let value = format!("Basic {}", BASE64_STANDARD.encode(pair));
        let value = HeaderValue::try_from(value);
        let mut value = value.map_err(|_| "invalid credentials in the URL")?;
        value.set_sensitive(true);
        Some(value)
    };
    // Neither call fails for a URL with a host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    Ok((url, credentials))
}

/// The error message for a URL that does not begin with a scheme.
fn no_scheme(text: &str) -> String {
    const WRONG: &str = "the URL must begin with http:// or https://";
    let host = text.trim_start_matches('/');
    let is_local = ["localhost", "127.", "[::1]"]
        .iter()
        .any(|local| host.starts_with(local));
    let scheme = if is_local { "http" } else { "https" };
    match Url::parse(&format!("{scheme}://{host}")) {
        Ok(url) if url.has_host() => format!("{WRONG}; did you mean {}?", redacted_url(&url)),
        _ => WRONG.to_owned(),
    }
}

impl Transport for Endpoint {
    type Read = EndpointReader;
    type Write = EndpointWriter;

    async fn connect(&mut self, limits: &Limits) -> Result<(EndpointReader, EndpointWriter)> {
        if let Some(problem) = &self.problem {
            return Err(Error::misuse(problem.clone()));
        }
        let url = self.url.clone();
        let url = url.ok_or_else(|| Error::misuse("the endpoint has no URL"))?;
        let client = match &self.client {
            Some(client) => Arc::clone(client),
            // The client is kept, so that its pool is there when the client connects again.
            None => Arc::clone(self.client.insert(Arc::new(DefaultClient::new()))),
        };
        let target = Target::new(url)?;
        let mut headers = self.headers.clone();
        if !self.own_client {
            DefaultClient::add_headers(&mut headers, &target.uri)?;
        }
        let client = match &self.token {
            Some(token) => Arc::new(WithToken::new(client, Arc::clone(token))),
            None => client,
        };
        #[cfg(feature = "auth")]
        let client = self.authorized(client, &target.url)?;
        let requests = RequestSender::new(client, target, headers);
        let (executor, spawner) = Executor::new();
        let mut exchanges = Exchanges::new(
            requests,
            spawner,
            self.reconnect.clone(),
            self.max_message.unwrap_or(limits.max_message_bytes),
            self.mirror.clone(),
        );
        exchanges.opens_standalone_stream = !self.no_standalone_stream;
        let exchanges = Arc::new(exchanges);
        if self.only_2024 {
            Box::pin(exchanges.open_2024()).await?;
        }
        Ok(halves(exchanges, executor))
    }

    fn name(&self) -> String {
        match &self.url {
            Some(url) => format!("the server at {}", redacted_url(url)),
            None => "the server".into(),
        }
    }

    fn identity(&self) -> Option<String> {
        let url = self.url.as_ref()?;
        // The query can be secret, but may also select another server.
        let query = url.query().map(|query| fingerprint([query.as_bytes()]));
        Some(format!(
            "{} {}",
            redacted_url(url),
            query.unwrap_or_default()
        ))
    }

    fn authorization(&self) -> Option<String> {
        if self.token.is_some() {
            // The next token may belong to another user.
            return None;
        }
        let own = self.own_authorization()?;
        #[cfg(feature = "auth")]
        if let Some(authorizer) = &self.authorizer {
            let identity = authorizer.name_identity()?;
            return Some(fingerprint([own.as_bytes(), identity.as_bytes()]));
        }
        Some(own)
    }

    fn answers_each(&self) -> bool {
        true
    }

    #[cfg(feature = "auth")]
    fn current_login(&self) -> Option<CurrentLogin> {
        self.authorizer.as_ref()?.login()
    }

    #[cfg(feature = "auth")]
    fn person_waits(&self) -> Option<UserWaits> {
        self.authorizer.as_ref()?.waits()
    }

    fn mirror(&self) -> Option<HeaderMirror> {
        Some(self.mirror.clone())
    }
}

/// Omits the values of headers, and the part of the URL after the path: both can be secret.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.keys().map(HeaderName::as_str).collect();
        f.debug_struct("Endpoint")
            .field("url", &self.url.as_ref().map(redacted_url))
            .field("headers", &names)
            .field("reconnect", &self.reconnect)
            .field("only_2024", &self.only_2024)
            .finish_non_exhaustive()
    }
}
