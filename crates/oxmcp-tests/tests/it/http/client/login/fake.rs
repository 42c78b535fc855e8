//! An MCP server and a strict authorization server, without sockets, with a switch for each fault.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard},
};

use ::http::{Method, Request, Response};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use bytes::Bytes;
use oxmcp::{
    Result,
    http::{HttpBody, HttpClient},
};
use serde_json::{Value, json};
use tokio::task::yield_now;

use super::{MCP, REDIRECT};

pub(super) const AS: &str = "https://as.example";
const RESOURCE_METADATA: &str = "/.well-known/oauth-protected-resource/mcp";
pub(super) const TOKEN: &str = "https://as.example/token";
const REVOKE: &str = "https://as.example/revoke";
const MOVED: &str = "https://as.example/moved";

/// The HTTP client of the tests, which leads to both servers. Clones lead to the same servers.
#[derive(Clone)]
pub(super) struct Web(Arc<Mutex<Fake>>);

/// Both servers.
pub(super) struct Fake {
    /// The requests so far, in order, each as a word or two.
    pub(super) log: Vec<String>,
    /// The secrets in requests and in answers, which must not appear elsewhere.
    pub(super) secrets: Vec<String>,
    /// The access tokens that are valid, each with its scopes.
    good: Vec<(String, BTreeSet<String>)>,
    /// The one refresh token that is valid, and its scopes.
    refresh: Option<(String, BTreeSet<String>)>,
    /// The authorization codes that were issued, with the parameters of their requests.
    codes: Vec<Code>,
    issued: usize,
    /// The keys that tokens are bound to (DPoP), by token.
    keys: BTreeMap<String, Value>,
    /// The lifetime of tokens, in seconds.
    pub(super) expires_in: u64,
    /// The tools that need the scope of their own name.
    pub(super) scoped: Vec<&'static str>,
    /// The scopes that the client is registered for.
    registered: BTreeSet<String>,
    /// Whether the page refuses a client that asks for scopes that it is not registered for. Otherwise no client may ask
    /// for such scopes.
    pub(super) refuses_scopes: bool,
    /// Whether the MCP server refuses all tokens.
    pub(super) refuses_all: bool,
    /// Whether the authorization server answers with another `state`.
    pub(super) breaks_state: bool,
    /// Whether only the first scope is granted.
    pub(super) withholds: bool,
    /// Whether the token endpoint fails with status 503.
    pub(super) is_down: bool,
    /// Whether the token endpoint has moved, so that its former URL fails.
    pub(super) has_moved: bool,
    /// Whether only calls of tools need a token.
    pub(super) greets_all: bool,
    /// The status of the revocation endpoint, if there is one.
    pub(super) revokes: Option<u16>,
    /// The tokens that tools were called with.
    pub(super) seen: Vec<String>,
    /// The clients that are registered.
    known: BTreeSet<String>,
    registrations: usize,
    /// The redirect URI that clients must have, if it is fixed.
    pub(super) redirect: Option<String>,
    /// The scope that every tool needs that is not in `scoped`.
    pub(super) needed: Option<String>,
    /// The response by which each refresh is refused.
    pub(super) refuses_refresh: Option<(u16, &'static str)>,
    /// Whether no refresh tokens are issued.
    pub(super) withholds_refresh: bool,
    /// Whether neither server has metadata, so that the endpoints are at the MCP server's origin.
    pub(super) hides: bool,
    /// Whether the MCP server has another authorization server now.
    pub(super) has_migrated: bool,
    /// The answers that replace others, by URL: a status and a body, or for 302 and 307 the URL of the redirect.
    pub(super) instead: BTreeMap<&'static str, (u16, String)>,
    /// The parameters of the authorization response besides `state`, in place of its own.
    pub(super) answers: Option<&'static str>,
    /// The issuer in the authorization server's metadata, and the issuer that its authorization responses name, if they are
    /// not its origin.
    pub(super) issuer: Option<(&'static str, &'static str)>,
    /// The `resource` parameter that requests must have. If it is empty, no request may have one.
    pub(super) resource: &'static str,
    /// Whether a GET needs a scope that no token has.
    pub(super) get_lacks: bool,
    /// Whether the MCP server has sessions.
    pub(super) has_sessions: bool,
}

struct Code {
    code: String,
    challenge: String,
    client: String,
    scopes: BTreeSet<String>,
}

impl Web {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Fake {
            log: Vec::new(),
            secrets: Vec::new(),
            good: Vec::new(),
            refresh: None,
            codes: Vec::new(),
            issued: 0,
            keys: BTreeMap::new(),
            expires_in: 3600,
            scoped: Vec::new(),
            registered: BTreeSet::new(),
            refuses_scopes: false,
            refuses_all: false,
            breaks_state: false,
            withholds: false,
            is_down: false,
            has_moved: false,
            greets_all: false,
            revokes: None,
            seen: Vec::new(),
            known: BTreeSet::new(),
            registrations: 0,
            redirect: Some(REDIRECT.to_owned()),
            needed: None,
            refuses_refresh: None,
            withholds_refresh: false,
            hides: false,
            has_migrated: false,
            instead: BTreeMap::new(),
            answers: None,
            issuer: None,
            resource: MCP,
            get_lacks: false,
            has_sessions: false,
        })))
    }

    pub(super) fn fake(&self) -> MutexGuard<'_, Fake> {
        self.0.lock().unwrap()
    }

    /// The requests to the authorization server since the last call of this method.
    pub(super) fn asked(&self) -> Vec<String> {
        let log = std::mem::take(&mut self.fake().log);
        log.into_iter()
            .filter(|it| !it.starts_with("mcp"))
            .collect()
    }

    /// The requests to the MCP server since the log was cleared.
    pub(super) fn asked_of_server(&self) -> Vec<String> {
        let log = self.fake().log.clone();
        log.into_iter().filter(|it| it.starts_with("mcp")).collect()
    }

    pub(super) fn answer(&self, request: &Request<Bytes>) -> Response<Bytes> {
        self.fake().answer(request)
    }

    /// Makes the authorization request as the browser of a person who agrees. Returns the URL of the redirect.
    pub(super) fn agree(&self, url: &str) -> String {
        self.fake().authorize(url)
    }
}

impl HttpClient for Web {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<HttpBody>> {
        // Other tasks run meanwhile.
        yield_now().await;
        Ok(self.answer(&request).map(HttpBody::from))
    }

    fn authorization(&self) -> Option<String> {
        Some(String::new())
    }
}

fn parameters(text: &str) -> impl Fn(&str) -> String {
    let pairs: Vec<(String, String)> = text
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (name.to_owned(), decode(value)))
        .collect();
    move |name| {
        let mut found = pairs.iter().filter(|(it, _)| it == name);
        let value = found.next().map(|(_, value)| value.clone());
        assert!(found.next().is_none(), "{name} twice");
        value.unwrap_or_default()
    }
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                let digits = std::str::from_utf8(&digits).unwrap().to_owned();
                u8::from_str_radix(&digits, 16).unwrap()
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).unwrap()
}

fn json_answer(status: u16, body: &Value) -> Response<Bytes> {
    let body = Bytes::from(body.to_string());
    let response = Response::builder().status(status);
    response
        .header("content-type", "application/json")
        .body(body)
        .unwrap()
}

/// The key of a proof of possession (DPoP). The proofs themselves are tested next to the code that makes them.
fn proven_key(request: &Request<Bytes>) -> Option<Value> {
    let proof = request.headers().get("dpop")?.to_str().unwrap();
    let (header, _) = proof.split_once('.').unwrap();
    let header = BASE64_URL_SAFE_NO_PAD.decode(header).unwrap();
    let header: Value = serde_json::from_slice(&header).unwrap();
    assert!(header["jwk"]["d"].is_null());
    Some(header["jwk"].clone())
}

fn scopes(text: &str) -> BTreeSet<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

impl Fake {
    /// Ends all access tokens.
    pub(super) fn expire(&mut self) {
        self.good.clear();
    }

    /// Adds a valid token that was issued elsewhere, and returns it.
    pub(super) fn grant(&mut self) -> String {
        self.secrets.push("elsewhere".to_owned());
        self.good.push(("elsewhere".to_owned(), BTreeSet::new()));
        "elsewhere".to_owned()
    }

    /// The origin of the authorization server.
    fn origin(&self) -> &'static str {
        match (self.hides, self.has_migrated) {
            (true, _) => "https://mcp.example",
            (_, true) => "https://as2.example",
            _ => AS,
        }
    }

    /// Forgets the clients that are registered.
    pub(super) fn forget_clients(&mut self) {
        self.known.clear();
    }

    /// Ends the refresh token.
    pub(super) fn revoke(&mut self) {
        self.refresh = None;
    }

    fn answer(&mut self, request: &Request<Bytes>) -> Response<Bytes> {
        let url = request.uri().to_string();
        let body = std::str::from_utf8(request.body()).unwrap();
        if let Some((status, body)) = self.instead.get(url.as_str()) {
            let mut response = Response::builder().status(*status);
            if matches!(status, 302 | 307) && !body.is_empty() {
                response = response.header("location", body);
            }
            return response.body(Bytes::from(body.clone())).unwrap();
        }
        if self.hides && url.contains("/.well-known/") {
            return json_answer(404, &json!({}));
        }
        let origin = self.origin();
        let url = match url.strip_prefix(origin) {
            Some(path) if url != MCP && path != RESOURCE_METADATA => format!("{AS}{path}"),
            _ => {
                assert!(!self.hides || url == MCP, "{url} is asked");
                url
            }
        };
        match url.as_str() {
            MCP => self.mcp(request),
            "https://mcp.example/.well-known/oauth-protected-resource/mcp" => {
                self.log.push("resource metadata".to_owned());
                json_answer(
                    200,
                    &json!({"resource": MCP, "authorization_servers": [origin], "scopes_supported": self.scoped}),
                )
            }
            "https://as.example/.well-known/oauth-authorization-server" => {
                self.log.push("metadata".to_owned());
                let mut metadata = json!({
                    "issuer": self.issuer.map_or(origin, |(issuer, _)| issuer),
                    "authorization_endpoint": format!("{origin}/authorize"),
                    "token_endpoint": format!("{origin}/{}", if self.has_moved { "moved" } else { "token" }),
                    "registration_endpoint": format!("{origin}/register"),
                    "code_challenge_methods_supported": ["S256"],
                    "token_endpoint_auth_methods_supported": ["none"],
                    "authorization_response_iss_parameter_supported": true,
                });
                if self.revokes.is_some() {
                    metadata["revocation_endpoint"] = REVOKE.into();
                }
                json_answer(200, &metadata)
            }
            "https://as.example/register" => {
                self.log.push("register".to_owned());
                let metadata: Value = serde_json::from_str(body).unwrap();
                if let Some(redirect) = &self.redirect {
                    assert_eq!(metadata["redirect_uris"], json!([redirect]));
                }
                self.registered = scopes(metadata["scope"].as_str().unwrap());
                self.registrations += 1;
                let id = format!("registered-{}", self.registrations);
                self.known.insert(id.clone());
                json_answer(201, &json!({"client_id": id}))
            }
            REVOKE => {
                let get = parameters(body);
                assert!(self.known.contains(&get("client_id")));
                let status = self.revokes.unwrap();
                self.log.push(format!("revoke {}", get("token_type_hint")));
                if status == 200 {
                    let token = get("token");
                    self.refresh.take_if(|(good, _)| *good == token);
                }
                json_answer(status, &json!({}))
            }
            "https://as.example/.well-known/openid-configuration" => json_answer(404, &json!({})),
            TOKEN if self.has_moved => json_answer(503, &json!({})),
            TOKEN | MOVED => self.token(body, proven_key(request)),
            _ => panic!("{url} is asked"),
        }
    }

    fn mcp(&mut self, request: &Request<Bytes>) -> Response<Bytes> {
        let header = request.headers().get("authorization");
        let header = header.map(|it| it.to_str().unwrap()).unwrap_or_default();
        let (scheme, token) = header.split_once(' ').unwrap_or_default();
        if let Some(key) = self.keys.get(token) {
            assert_eq!((scheme, proven_key(request).as_ref()), ("DPoP", Some(key)));
        } else {
            assert!(matches!(scheme, "" | "Bearer"), "{scheme}");
        }
        let challenge = |status: u16, challenge: &str| {
            let mut response = json_answer(status, &json!({}));
            let challenge = challenge.parse().unwrap();
            response.headers_mut().insert("www-authenticate", challenge);
            response
        };
        let everybody = (String::new(), BTreeSet::new());
        let is_greeting = !request.body().windows(10).any(|it| it == b"tools/call");
        let found = if self.greets_all && is_greeting {
            Some(&everybody)
        } else {
            self.good.iter().find(|(good, _)| good == token)
        };
        let Some((_, has)) = found.filter(|_| !self.refuses_all) else {
            self.log.push("mcp 401".to_owned());
            return challenge(401, r#"Bearer scope="base", error="invalid_token""#);
        };
        if self.get_lacks && request.method() == Method::GET {
            self.log.push("mcp 403".to_owned());
            let value = r#"Bearer error="insufficient_scope", scope="listen""#;
            return challenge(403, value);
        }
        if request.method() != Method::POST {
            self.log.push(format!("mcp {}", request.method()));
            return json_answer(405, &json!({}));
        }
        let message: Value = serde_json::from_slice(request.body()).unwrap();
        let tool = message["params"]["name"].as_str().unwrap_or_default();
        let needed = self.needed.as_deref();
        let needed = self.scoped.contains(&tool).then_some(tool).or(needed);
        let is_call = !tool.is_empty();
        if let Some(scope) = needed.filter(|scope| is_call && !has.contains(*scope)) {
            self.log.push("mcp 403".to_owned());
            let value = format!(r#"Bearer error="insufficient_scope", scope="{scope}""#);
            return challenge(403, &value);
        }
        let result = match message["method"].as_str().unwrap() {
            "initialize" => json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "fake", "version": "1"},
            }),
            "tools/call" => {
                self.seen.push(token.to_owned());
                json!({"content": []})
            }
            "tools/list" => {
                self.log.push(format!("mcp list by {token}"));
                let tool = json!({"name": token, "inputSchema": {"type": "object"}});
                json!({"tools": [tool], "ttlMs": 600_000, "cacheScope": "private"})
            }
            _ => {
                return Response::builder().status(202).body(Bytes::new()).unwrap();
            }
        };
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        let mut response = json_answer(200, &answer);
        if self.has_sessions && message["method"] == "initialize" {
            let id = "one".parse().unwrap();
            response.headers_mut().insert("mcp-session-id", id);
        }
        response
    }

    fn authorize(&mut self, url: &str) -> String {
        let (endpoint, query) = url.split_once('?').unwrap();
        let origin = self.origin();
        assert_eq!(endpoint, format!("{origin}/authorize"));
        let get = parameters(query);
        self.log.push(format!("authorize {}", get("scope")));
        let is_registered = scopes(&get("scope")).is_subset(&self.registered);
        if self.refuses_scopes && !is_registered {
            let (redirect, state) = (get("redirect_uri"), get("state"));
            return format!("{redirect}?error=invalid_scope&state={state}&iss={origin}");
        }
        assert!(is_registered || !self.known.contains(&get("client_id")));
        assert_eq!(get("response_type"), "code");
        let redirect = get("redirect_uri");
        assert!(self.redirect.as_ref().is_none_or(|it| *it == redirect));
        self.check_resource(query);
        assert_eq!(get("code_challenge_method"), "S256");
        self.issued += 1;
        let code = format!("code-hunter{}", self.issued);
        self.secrets.extend([get("state"), get("code_challenge")]);
        self.codes.push(Code {
            code: code.clone(),
            challenge: get("code_challenge"),
            client: get("client_id"),
            scopes: scopes(&get("scope")),
        });
        let state = if self.breaks_state {
            "another".to_owned()
        } else {
            get("state")
        };
        if let Some(answers) = self.answers {
            return format!("{redirect}?state={state}&{answers}");
        }
        if self.hides {
            return format!("{redirect}?code={code}&state={state}");
        }
        let issuer = self.issuer.map_or(origin, |(_, named)| named);
        format!("{redirect}?code={code}&state={state}&iss={issuer}")
    }

    fn check_resource(&self, asked: &str) {
        assert_eq!(parameters(asked)("resource"), self.resource);
        assert!(!self.resource.is_empty() || !asked.contains("resource"));
    }

    fn token(&mut self, body: &str, key: Option<Value>) -> Response<Bytes> {
        let get = parameters(body);
        let grant = get("grant_type");
        self.log.push(grant.clone());
        self.check_resource(body);
        if self.is_down {
            return json_answer(503, &json!({}));
        }
        let refused = |error: &str| json_answer(400, &json!({"error": error}));
        if !self.known.contains(&get("client_id")) {
            return json_answer(401, &json!({"error": "invalid_client"}));
        }
        let scopes = if grant == "authorization_code" {
            let place = self.codes.iter().position(|it| it.code == get("code"));
            let Some(place) = place else {
                return refused("invalid_grant");
            };
            let code = self.codes.remove(place);
            assert_eq!(code.client, get("client_id"));
            let redirect = get("redirect_uri");
            assert!(self.redirect.as_ref().is_none_or(|it| *it == redirect));
            assert!(is_verified(&get("code_verifier"), &code.challenge));
            self.secrets.push(get("code_verifier"));
            let granted = if self.withholds { 1 } else { usize::MAX };
            code.scopes.into_iter().take(granted).collect()
        } else {
            if let Some((status, body)) = self.refuses_refresh {
                let response = Response::builder().status(status);
                return response.body(Bytes::from(body)).unwrap();
            }
            // A refresh token that is used twice counts as stolen: all tokens of its family end.
            let good = self.refresh.take();
            let is_good =
                |good: &str| good == get("refresh_token") && self.keys.get(good) == key.as_ref();
            let Some((_, scopes)) = good.filter(|(good, _)| is_good(good)) else {
                self.expire();
                return refused("invalid_grant");
            };
            scopes
        };
        self.issued += 1;
        let (access, refresh) = (
            format!("access-hunter{}", self.issued),
            format!("refresh-hunter{}", self.issued),
        );
        self.good.push((access.clone(), scopes.clone()));
        self.refresh = Some((refresh.clone(), scopes));
        let token_type = if let Some(key) = key {
            let tokens = [access.clone(), refresh.clone()];
            self.keys.extend(tokens.map(|it| (it, key.clone())));
            "DPoP"
        } else {
            "Bearer"
        };
        let refresh = (!self.withholds_refresh).then_some(refresh);
        let answer = json!({
            "access_token": access,
            "token_type": token_type,
            "expires_in": self.expires_in,
            "refresh_token": refresh,
        });
        json_answer(200, &answer)
    }
}

/// Whether a challenge can have been made of a verifier. The hash itself is tested next to the code that makes it.
fn is_verified(verifier: &str, challenge: &str) -> bool {
    verifier.len() == 43 && challenge.len() == 43 && verifier != challenge
}
