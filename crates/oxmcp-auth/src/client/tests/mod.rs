//! Tests of the steps of a client: each rule without a socket.

mod authorization;
mod credentials;
mod discovery;
mod registration;
mod scopes;
mod tokens;

use http::StatusCode;

use super::{Conversation, Discovered, Discovery, DiscoveryOptions};
use crate::{
    challenge::Challenge,
    error::Result,
    exchange::{Request, Response},
    metadata::authorization_server::AuthorizationServerMetadata,
    time::UnixTime,
};

const NOW: UnixTime = UnixTime::from_seconds(1_800_000_000);
const MCP: &str = "https://mcp.example/mcp";
const AS: &str = "https://as.example";

/// URLs on the web, with their status and body; all others are 404.
type Web<'a> = &'a [(&'a str, u16, &'a str)];

fn response(status: u16, body: &str) -> Response {
    let mut response = Response::new(body.to_owned().into());
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

/// Runs a conversation. Returns the requests that it sent, and its result.
fn run<C: Conversation>(
    conversation: &mut C,
    answer: impl Fn(&Request) -> Response,
) -> (Vec<Request>, Result<C::Output>) {
    let mut asked = Vec::new();
    loop {
        let request = match conversation.request(NOW) {
            Ok(request) => request,
            Err(error) => return (asked, Err(error)),
        };
        let answer = answer(&request);
        asked.push(request);
        assert!(asked.len() < 10, "too many requests");
        match conversation.receive(&answer, NOW) {
            Ok(None) => {}
            Ok(Some(result)) => return (asked, Ok(result)),
            Err(error) => return (asked, Err(error)),
        }
    }
}

fn discover(
    server: &str,
    challenge: Option<&Challenge>,
    options: DiscoveryOptions,
    web: Web<'_>,
) -> (Vec<String>, Result<Discovered>) {
    let mut discovery = match Discovery::new(server, challenge, options) {
        Ok(discovery) => discovery,
        Err(error) => return (Vec::new(), Err(error)),
    };
    let (asked, result) = run(&mut discovery, |request| {
        let url = request.uri().to_string();
        let place = web.iter().find(|(place, ..)| *place == url);
        place.map_or_else(
            || response(404, ""),
            |(_, status, body)| response(*status, body),
        )
    });
    let urls = asked.iter().map(|request| request.uri().to_string());
    (urls.collect(), result)
}

fn server() -> AuthorizationServerMetadata {
    AuthorizationServerMetadata::parse(
        br#"{"issuer": "https://as.example", "authorization_endpoint": "https://as.example/authorize",
            "token_endpoint": "https://as.example/token", "registration_endpoint": "https://as.example/register",
            "revocation_endpoint": "https://as.example/revoke", "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"]}"#,
    )
    .unwrap()
}

fn discovered(server: AuthorizationServerMetadata) -> Discovered {
    Discovered {
        server,
        resource: Some(MCP.to_owned()),
        resource_metadata: None,
        is_default: false,
    }
}

/// The parameters of a form or a query.
fn parameters(text: &str) -> Vec<(String, String)> {
    url::form_urlencoded::parse(text.as_bytes())
        .into_owned()
        .collect()
}

fn form(request: &Request) -> Vec<(String, String)> {
    assert_eq!(
        request.headers()["content-type"],
        "application/x-www-form-urlencoded"
    );
    parameters(std::str::from_utf8(request.body().as_ref()).unwrap())
}

fn value<'a>(parameters: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let mut found = parameters.iter().filter(|(it, _)| it == name);
    let value = found.next().map(|(_, value)| value.as_str());
    assert!(found.next().is_none(), "{name} twice");
    value
}
