//! Discovery of the metadata of an MCP server's authorization server.

use std::collections::VecDeque;

use http::{
    HeaderValue, Method, StatusCode,
    header::{ACCEPT, HeaderName},
};
use url::{ParseError, Url};

use super::conversation::Conversation;
use crate::{
    challenge::Challenge,
    error::{AuthError, AuthErrorKind, Result},
    exchange::{Body, Request, Response},
    metadata::{
        authorization_server::AuthorizationServerMetadata,
        document::{Tolerated, without_mark},
        protected_resource::ProtectedResourceMetadata,
        well_known::{
            authorization_server_metadata_urls, origin, protected_resource_metadata_urls,
        },
    },
    time::UnixTime,
    url_rules::{UrlRules, is_same_issuer, is_uri, parse, shown_url},
};

/// The `resource` parameter of requests to the authorization server
/// ([RFC 8707](https://www.rfc-editor.org/rfc/rfc8707#section-2)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResourceParameter {
    /// The `resource` in the MCP server's metadata, or else the server's URL.
    #[default]
    Discovered,
    /// This fixed text.
    Fixed(String),
    /// No parameter, for authorization servers that refuse it.
    Omitted,
}

/// Options of discovery. Most programs need only the defaults.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct DiscoveryOptions {
    /// The issuer to use instead of the one that the MCP server names: for metadata whose issuer is spelled differently, or for
    /// a server that names several issuers or none.
    pub issuer: Option<String>,
    /// The issuers to prefer if the server names several: those that have issued credentials.
    pub preferred_issuers: Vec<String>,
    /// The `resource` parameter to send.
    pub resource: ResourceParameter,
    /// Whether to disable the fallback of revision 2025-03-26: an authorization server at the origin of an MCP server that has
    /// no metadata.
    pub without_default_endpoints: bool,
    /// Whether metadata without PKCE methods is treated as if it named S256: for servers that support S256 but do not advertise
    /// it. Metadata that names only other methods is still refused.
    pub assume_pkce: bool,
}

/// The result of discovery.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Discovered {
    /// The checked metadata of the authorization server.
    pub server: AuthorizationServerMetadata,
    /// The exact `resource` parameter to send.
    pub resource: Option<String>,
    /// The metadata of the MCP server, if it has any.
    pub resource_metadata: Option<ProtectedResourceMetadata>,
    /// Whether the endpoints are the defaults of revision 2025-03-26, because there is no metadata. Never send stored
    /// credentials to these, since an attacker who can hide metadata could choose them.
    pub is_default: bool,
}

/// The discovery of the authorization server of an MCP server.
///
/// ```
/// use oxmcp_auth::{Response, UnixTime, client::{Conversation, Discovery, DiscoveryOptions}};
///
/// let now = UnixTime::default();
/// let mut discovery = Discovery::new("https://mcp.example/mcp", None, DiscoveryOptions::default())?;
/// assert_eq!(discovery.request(now)?.uri(), "https://mcp.example/.well-known/oauth-protected-resource/mcp");
/// let answer = r#"{"resource": "https://mcp.example/mcp", "authorization_servers": ["https://as.example"]}"#;
/// assert!(discovery.receive(&Response::new(answer.into()), now)?.is_none());
/// assert_eq!(discovery.request(now)?.uri(), "https://as.example/.well-known/oauth-authorization-server");
/// let answer = r#"{"issuer": "https://as.example", "token_endpoint": "https://as.example/token"}"#;
/// let found = discovery.receive(&Response::new(answer.into()), now)?.expect("all is known");
/// assert_eq!(found.resource.as_deref(), Some("https://mcp.example/mcp"));
/// # Ok::<(), oxmcp_auth::AuthError>(())
/// ```
///
/// See [Authorization Server Discovery](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization/authorization-server-discovery).
#[derive(Debug)]
pub struct Discovery {
    server: String,
    rules: UrlRules,
    options: DiscoveryOptions,
    stage: Stage,
    /// The URLs that are still to be tried, the next one first.
    places: VecDeque<String>,
    /// The responses from the URLs that were tried in this stage, for the error message.
    answers: Vec<String>,
    /// Whether the URLs that were tried, in all stages, returned nothing but 404.
    is_all_absent: bool,
    tolerated: Vec<Tolerated>,
}

#[derive(Debug)]
enum Stage {
    /// Metadata of the MCP server.
    Resource { is_announced: bool },
    /// Metadata of the authorization server.
    Server {
        issuer: String,
        resource: Option<ProtectedResourceMetadata>,
    },
    /// Metadata of an authorization server at the origin of the MCP server, which has no metadata itself.
    Origin { origin: String },
}

/// The response from a metadata URL.
enum Answer<'a> {
    Document(&'a [u8]),
    /// There is no document, and another URL may be tried.
    Absent,
}

impl Discovery {
    /// Starts the search for the MCP server at this URL, with the challenge that it sent.
    ///
    /// # Errors
    ///
    /// If no request may be sent to the URL of the server, or to that of the metadata in the challenge.
    pub fn new(
        server: impl Into<String>,
        challenge: Option<&Challenge>,
        options: DiscoveryOptions,
    ) -> Result<Self> {
        let server = server.into();
        let rules = UrlRules::for_server(&server)?;
        let announced = challenge.and_then(Challenge::resource_metadata);
        let announced = announced
            .filter(|it| !it.is_empty())
            .map(|it| absolute(it, &server));
        // If the challenge names a URL, no other is tried: another server on the same origin may have metadata at the root.
        let is_announced = announced.is_some();
        let places = match announced {
            Some(url) => {
                rules.check(&url, "resource_metadata of the challenge")?;
                vec![url]
            }
            None => protected_resource_metadata_urls(&server)?,
        };
        Ok(Self {
            server,
            rules,
            options,
            stage: Stage::Resource { is_announced },
            places: places.into(),
            answers: Vec::new(),
            is_all_absent: true,
            tolerated: Vec::new(),
        })
    }

    /// Reads the metadata of the MCP server, then starts to fetch the metadata of its authorization server.
    fn resource_found(&mut self, body: &[u8]) -> Result<()> {
        let metadata = ProtectedResourceMetadata::parse_noting(body, &mut self.tolerated)?;
        metadata.check_resource(&self.server)?;
        let issuer = self.choose_issuer(&metadata)?;
        self.ask_server(issuer, Some(metadata))
    }

    fn choose_issuer(&self, metadata: &ProtectedResourceMetadata) -> Result<String> {
        if let Some(issuer) = &self.options.issuer {
            return Ok(issuer.clone());
        }
        let servers = &metadata.authorization_servers;
        let all = &self.options.preferred_issuers;
        let preferred = |it: &&String| all.iter().any(|known| is_same_issuer(known, it));
        let issuer = servers.iter().find(preferred).or_else(|| servers.first());
        issuer.cloned().ok_or_else(|| {
            AuthError::malformed(format!(
                "metadata of {:?} names no authorization server (`authorization_servers`); add it there, or configure the issuer",
                shown_url(&self.server)
            ))
        })
    }

    fn ask_server(
        &mut self,
        issuer: String,
        resource: Option<ProtectedResourceMetadata>,
    ) -> Result<()> {
        self.rules.check(&issuer, "issuer")?;
        self.places = authorization_server_metadata_urls(&issuer)?.into();
        self.answers.clear();
        self.stage = Stage::Server { issuer, resource };
        Ok(())
    }

    /// Continues after all URLs of the stage were tried and none has a document.
    fn exhausted(&mut self) -> Result<Option<Discovered>> {
        match &self.stage {
            Stage::Resource { is_announced } => {
                let may_guess = !is_announced && self.is_all_absent;
                if let Some(issuer) = self.options.issuer.clone() {
                    self.ask_server(issuer, None)?;
                    return Ok(None);
                }
                if !may_guess || self.options.without_default_endpoints {
                    return Err(self.nothing("metadata of the MCP server", shown_url(&self.server)));
                }
                let origin = origin(&parse(&self.server, "URL of the MCP server")?);
                self.places = authorization_server_metadata_urls(&origin)?.into();
                self.answers.clear();
                self.stage = Stage::Origin { origin };
                Ok(None)
            }
            Stage::Server { issuer, .. } => {
                Err(self.nothing("metadata of the authorization server", issuer))
            }
            Stage::Origin { origin } => {
                if !self.is_all_absent {
                    return Err(self.nothing("metadata of the authorization server", origin));
                }
                let server = AuthorizationServerMetadata::default_endpoints(origin);
                self.found(server, None, true).map(Some)
            }
        }
    }

    fn nothing(&self, what: &str, of: &str) -> AuthError {
        let answers = self.answers.join(", ");
        AuthError::unsupported(format!(
            "could not find the {what} {of:?}: {answers}; check the URL, or configure the issuer"
        ))
    }

    fn found(
        &self,
        mut server: AuthorizationServerMetadata,
        resource: Option<ProtectedResourceMetadata>,
        is_default: bool,
    ) -> Result<Discovered> {
        let parameter = match &self.options.resource {
            ResourceParameter::Fixed(text) => Some(text.clone()),
            ResourceParameter::Omitted => None,
            ResourceParameter::Discovered => Some(match &resource {
                Some(metadata) => metadata.resource.clone(),
                None => canonical(&self.server)?,
            }),
        };
        if self.options.assume_pkce {
            let methods = &mut server.code_challenge_methods_supported;
            methods.get_or_insert_with(|| vec!["S256".to_owned()]);
        }
        Ok(Discovered {
            server,
            resource: parameter,
            resource_metadata: resource,
            is_default,
        })
    }

    fn read<'a>(&mut self, url: &str, response: &'a Response) -> Result<Answer<'a>> {
        let status = response.status();
        let body = response.body().as_ref();
        let json = without_mark(body);
        let is_object = || json.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
        if status == StatusCode::OK && is_object() {
            return Ok(Answer::Document(body));
        }
        // Some web servers return 200 with their front page for URLs that do not exist.
        let may_go_on =
            status.is_client_error() || matches!(status, StatusCode::OK | StatusCode::BAD_GATEWAY);
        self.is_all_absent &= status == StatusCode::NOT_FOUND;
        let came = if status == StatusCode::OK {
            "200 without a JSON object".to_owned()
        } else {
            status.as_u16().to_string()
        };
        let url = shown_url(url);
        self.answers.push(format!("{url} returned {came}"));
        if may_go_on {
            return Ok(Answer::Absent);
        }
        let kind = if status.is_server_error() {
            AuthErrorKind::Unavailable
        } else {
            AuthErrorKind::Malformed
        };
        Err(AuthError::new(
            kind,
            format!("expected a metadata document at {url:?}, but got {came}"),
        ))
    }
}

impl Conversation for Discovery {
    type Output = Discovered;

    fn request(&mut self, _now: UnixTime) -> Result<Request> {
        let Some(url) = self.places.front() else {
            return Err(AuthError::configuration(
                "discovery has already finished; start a new one",
            ));
        };
        let mut request = Request::new(Body::default());
        *request.method_mut() = Method::GET;
        *request.uri_mut() = uri(url)?;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if matches!(self.stage, Stage::Origin { .. }) {
            let name = HeaderName::from_static("mcp-protocol-version");
            headers.insert(name, HeaderValue::from_static("2025-03-26"));
        }
        Ok(request)
    }

    fn receive(&mut self, response: &Response, _now: UnixTime) -> Result<Option<Discovered>> {
        let Some(url) = self.places.pop_front() else {
            return Err(AuthError::configuration(
                "discovery has already finished; start a new one",
            ));
        };
        let Answer::Document(body) = self.read(&url, response)? else {
            return if self.places.is_empty() {
                self.exhausted()
            } else {
                Ok(None)
            };
        };
        let (issuer, resource) = match &mut self.stage {
            Stage::Resource { .. } => {
                let found = self.resource_found(body);
                return found
                    .map(|()| None)
                    .map_err(|error| error.at(shown_url(&url)));
            }
            Stage::Server { issuer, resource } => (issuer.clone(), resource.take()),
            Stage::Origin { origin } => (origin.clone(), None),
        };
        self.places.clear();
        let server = AuthorizationServerMetadata::parse_noting(body, &mut self.tolerated);
        let mut server = server.map_err(|error| error.at(&url))?;
        let checked = server.check(&issuer, self.rules);
        checked.map_err(|error| error.at(&url))?;
        if server.issuer != issuer {
            let what = "authorization server metadata";
            let spelling = Tolerated::new(what, "issuer", "the name of the server");
            self.tolerated.push(spelling);
        }
        server.found_at = Some(url);
        self.found(server, resource, false).map(Some)
    }

    fn tolerated(&mut self) -> Vec<Tolerated> {
        std::mem::take(&mut self.tolerated)
    }
}

/// The absolute form of the URL in a challenge, which some servers write as a relative one.
fn absolute(url: &str, server: &str) -> String {
    match Url::parse(url) {
        // Other characters are left for the check of the result, which refuses them.
        Err(ParseError::RelativeUrlWithoutBase) if is_uri(url) => Url::parse(server)
            .and_then(|base| base.join(url))
            .map_or_else(|_| url.to_owned(), String::from),
        _ => url.to_owned(),
    }
}

/// A URL as the target of a request.
pub(crate) fn uri(url: &str) -> Result<http::Uri> {
    // A URL that the `url` crate accepts may still hold characters that the `http` crate refuses.
    let parsed = parse(url, "URL")?;
    let text = parsed.as_str().split('#').next().unwrap_or_default();
    text.parse()
        .map_err(|_| AuthError::malformed(format!("invalid URL {url:?}")))
}

/// The canonical URI of an MCP server: its URL without a query, which can be secret, without a fragment, and without the
/// slash of an empty path.
fn canonical(server: &str) -> Result<String> {
    let parsed = parse(server, "URL of the MCP server")?;
    let text = shown_url(server);
    let text = if parsed.path() == "/" {
        text.trim_end_matches('/')
    } else {
        text
    };
    Ok(text.to_owned())
}
