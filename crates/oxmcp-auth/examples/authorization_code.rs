//! A login from the refused request to the token, with canned responses instead of a network.

#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::{collections::VecDeque, error::Error};

use oxmcp_auth::{
    AuthError, Challenge, Response, ScopeSet, UnixTime,
    client::{
        Authorization, ClientChoice, ClientMetadata, ClientOptions, Conversation, Discovery,
        DiscoveryOptions, ScopeSelection, TokenRequest, choose_client,
    },
};

const REDIRECT: &str = "http://127.0.0.1:4711/callback";

/// The responses of the servers, in order.
struct Answers(VecDeque<&'static str>);

impl Answers {
    /// Runs a conversation to its result. In a program, requests are sent here.
    fn run<C: Conversation>(
        &mut self,
        mut conversation: C,
        now: UnixTime,
    ) -> Result<C::Output, AuthError> {
        loop {
            let request = conversation.request(now)?;
            println!("{} {}", request.method(), request.uri());
            let answer = self.0.pop_front().unwrap_or_default();
            if let Some(result) = conversation.receive(&Response::new(answer.into()), now)? {
                return Ok(result);
            }
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let now = UnixTime::from(std::time::SystemTime::now());
    let mut answers = Answers(VecDeque::from([
        r#"{"resource": "https://mcp.example/mcp", "authorization_servers": ["https://as.example"]}"#,
        r#"{"issuer": "https://as.example", "authorization_endpoint": "https://as.example/authorize",
            "token_endpoint": "https://as.example/token", "registration_endpoint": "https://as.example/register",
            "code_challenge_methods_supported": ["S256"], "token_endpoint_auth_methods_supported": ["none"]}"#,
        r#"{"client_id": "c-1"}"#,
        r#"{"access_token": "t-1", "token_type": "Bearer", "expires_in": 3600}"#,
    ]));

    let challenge = Challenge::bearer().with("scope", "mcp:read");
    let discovery = Discovery::new(
        "https://mcp.example/mcp",
        Some(&challenge),
        DiscoveryOptions::default(),
    )?;
    let discovered = answers.run(discovery, now)?;
    let scopes = ScopeSelection::default().select(Some(&challenge), &discovered, &ScopeSet::new());

    let mut options = ClientOptions::default();
    options.dynamic = Some(ClientMetadata::new("An example", [REDIRECT])?);
    let client = match choose_client(&discovered.server, &options, Some(REDIRECT), &scopes, now)? {
        ClientChoice::Ready(client) => client,
        ClientChoice::Register(registration) => answers.run(*registration, now)?,
        _ => return Err("a choice that this example does not know".into()),
    };

    let attempt = Authorization::new(&discovered, &client, REDIRECT)
        .scopes(scopes)
        .begin()?;
    println!("send the user to {}", attempt.url());
    // The browser is redirected back.
    let callback = format!("{REDIRECT}?code=abc&state={}", attempt.state().expose());
    let code = attempt.finish(&callback)?;
    let request = TokenRequest::authorization_code(&discovered.server, &client, &attempt, code)?;
    let tokens = answers.run(request, now)?;
    println!("{tokens:?}");
    assert!(!tokens.expires_within(60, now));
    Ok(())
}
