//! The messages of logins that fail: each names the requested URL, the expected answer, and the actual answer.

use std::fmt::Write;

use super::*;
use crate::http::client::login::fake::{AS, Fake};

pub(super) const PLACE: &str = "https://mcp.example/.well-known/oauth-protected-resource/mcp";
pub(super) const METADATA: &str = "https://as.example/.well-known/oauth-authorization-server";
const OPENID: &str = "https://as.example/.well-known/openid-configuration";
const REGISTER: &str = "https://as.example/register";
const TOKEN: &str = "https://as.example/token";

type Fault = (&'static str, fn(&mut Fake));

pub(super) fn instead(fake: &mut Fake, url: &'static str, status: u16, body: &str) {
    fake.instead.insert(url, (status, body.to_owned()));
}

const FAULTS: &[Fault] = &[
    ("the place of the resource's metadata is down", |fake| {
        instead(fake, PLACE, 503, "hunter2");
    }),
    ("the resource's metadata are cut off", |fake| {
        instead(fake, PLACE, 200, r#"{"resource": "hunter2"#);
    }),
    ("the metadata are of another resource", |fake| {
        instead(
            fake,
            PLACE,
            200,
            r#"{"resource": "https://evil.example/", "authorization_servers": []}"#,
        );
    }),
    ("no authorization server is named", |fake| {
        instead(
            fake,
            PLACE,
            200,
            r#"{"resource": "https://mcp.example/mcp"}"#,
        );
    }),
    ("the metadata redirect without end", |fake| {
        instead(fake, METADATA, 302, METADATA);
    }),
    ("the metadata redirect to plain http", |fake| {
        instead(fake, METADATA, 302, "http://as.example/");
    }),
    ("the metadata redirect into this network", |fake| {
        instead(fake, METADATA, 302, "https://169.254.169.254/");
    }),
    ("the metadata are too long", |fake| {
        instead(fake, METADATA, 200, &" ".repeat((1 << 20) + 1));
    }),
    ("the authorization server has no metadata", |fake| {
        instead(fake, METADATA, 404, "");
        instead(fake, OPENID, 404, "");
    }),
    ("its metadata are a list", |fake| {
        instead(fake, METADATA, 200, "[]");
    }),
    ("its metadata cannot be read", |fake| {
        instead(fake, METADATA, 200, r#"{"issuer": "x""#);
    }),
    ("its metadata name no issuer", |fake| {
        instead(fake, METADATA, 200, r#"{"issuer": 1}"#);
    }),
    ("its metadata are of another issuer", |fake| {
        instead(fake, METADATA, 200, r#"{"issuer": "https://as.example/x"}"#);
    }),
    ("it has no PKCE", |fake| {
        let text = format!(
            r#"{{"issuer": "{AS}", "authorization_endpoint": "{AS}/authorize", "token_endpoint": "{TOKEN}",
            "registration_endpoint": "{REGISTER}", "code_challenge_methods_supported": ["plain"]}}"#
        );
        instead(fake, METADATA, 200, &text);
    }),
    ("its support of PKCE is not said", |fake| {
        let text = format!(
            r#"{{"issuer": "{AS}", "authorization_endpoint": "{AS}/authorize", "token_endpoint": "{TOKEN}",
            "registration_endpoint": "{REGISTER}"}}"#
        );
        instead(fake, METADATA, 200, &text);
    }),
    ("it has no place to log in", |fake| {
        let text = format!(
            r#"{{"issuer": "{AS}", "token_endpoint": "{TOKEN}", "registration_endpoint": "{REGISTER}"}}"#
        );
        instead(fake, METADATA, 200, &text);
    }),
    ("clients cannot register", |fake| {
        let text = format!(
            r#"{{"issuer": "{AS}", "authorization_endpoint": "{AS}/authorize", "token_endpoint": "{TOKEN}",
            "code_challenge_methods_supported": ["S256"]}}"#
        );
        instead(fake, METADATA, 200, &text);
    }),
    ("the registration is refused", |fake| {
        let text = r#"{"error": "invalid_redirect_uri", "error_description": "no loopback here"}"#;
        instead(fake, REGISTER, 400, text);
    }),
    ("the registration cannot be read", |fake| {
        instead(fake, REGISTER, 201, "{}");
    }),
    ("the answer is an error", |fake| {
        fake.answers =
            Some("error=access_denied&error_description=not+today&iss=https%3A%2F%2Fas.example");
    }),
    ("the answer is from another issuer", |fake| {
        fake.answers = Some("code=hunter2&iss=https%3A%2F%2Fevil.example");
    }),
    ("the answer does not say whose it is", |fake| {
        fake.answers = Some("code=hunter2");
    }),
    ("the answer is empty", |fake| {
        fake.answers = Some("iss=https%3A%2F%2Fas.example");
    }),
    ("the answer is to another request", |fake| {
        fake.breaks_state = true;
    }),
    ("the token endpoint is down", |fake| fake.is_down = true),
    ("the code is refused", |fake| {
        fake.answers = Some("code=hunter2&iss=https%3A%2F%2Fas.example");
    }),
    ("the token answer cannot be read", |fake| {
        instead(fake, TOKEN, 200, r#"{"access_token": "hunter2"}"#);
    }),
    ("the token is of another type", |fake| {
        instead(
            fake,
            TOKEN,
            200,
            r#"{"access_token": "hunter2", "token_type": "mac"}"#,
        );
    }),
    ("the token endpoint redirects", |fake| {
        instead(fake, TOKEN, 302, "");
    }),
];

#[tokio::test(start_paused = true)]
async fn each_fault_is_named_with_its_place_and_without_secrets() {
    let mut messages = String::new();
    for (name, fault) in FAULTS {
        let web = Web::new();
        fault(&mut web.fake());
        let error = connect(&web, agreeing(&web)).await.unwrap_err();
        assert!(error.is_authorization(), "{name}: {error:?}");
        assert!(
            !format!("{error:#?}").contains("hunter"),
            "{name}: {error:#?}"
        );
        writeln!(messages, "{name}:\n  {error}").unwrap();
    }
    insta::assert_snapshot!(messages, @r#"
    the place of the resource's metadata is down:
      POST https://mcp.example/mcp failed: a metadata document was expected at "https://mcp.example/.well-known/oauth-protected-resource/mcp", and 503 came
    the resource's metadata are cut off:
      POST https://mcp.example/mcp failed: "https://mcp.example/.well-known/oauth-protected-resource/mcp": the metadata of the protected resource cannot be read: it ends too early (line 1, column 21)
    the metadata are of another resource:
      POST https://mcp.example/mcp failed: "https://mcp.example/.well-known/oauth-protected-resource/mcp": the protected resource metadata is of "https://evil.example/", and the MCP server is "https://mcp.example/mcp": a token for the one must not be sent to the other. Connect to the URL that the metadata names, or have its `resource` put right
    no authorization server is named:
      POST https://mcp.example/mcp failed: "https://mcp.example/.well-known/oauth-protected-resource/mcp": the metadata of "https://mcp.example/mcp" names no authorization server (`authorization_servers`): nobody knows where to get a token. If you know it, configure the issuer
    the metadata redirect without end:
      POST https://mcp.example/mcp failed: https://as.example/.well-known/oauth-authorization-server redirects more than 3 times in a row
    the metadata redirect to plain http:
      POST https://mcp.example/mcp failed: the URL that https://as.example/.well-known/oauth-authorization-server redirects to "http://as.example/" must be https
    the metadata redirect into this network:
      POST https://mcp.example/mcp failed: https://169.254.169.254/ could not be asked: 169.254.169.254 is at 169.254.169.254, which is no public address: what another server names must not lead there. If that is right, say so: by Login::trust_host, or TrustedIssuer::keys_at
    the metadata are too long:
      POST https://mcp.example/mcp failed: https://as.example/.well-known/oauth-authorization-server could not be asked: the answer of https://as.example/.well-known/oauth-authorization-server is longer than 1048576 bytes
    the authorization server has no metadata:
      POST https://mcp.example/mcp failed: there is no metadata of the authorization server "https://as.example": https://as.example/.well-known/oauth-authorization-server answered 404, https://as.example/.well-known/openid-configuration answered 404. If you know the authorization server, configure the issuer
    its metadata are a list:
      POST https://mcp.example/mcp failed: there is no metadata of the authorization server "https://as.example": https://as.example/.well-known/oauth-authorization-server answered 200 without a JSON object, https://as.example/.well-known/openid-configuration answered 404. If you know the authorization server, configure the issuer
    its metadata cannot be read:
      POST https://mcp.example/mcp failed: "https://as.example/.well-known/oauth-authorization-server": the metadata of the authorization server cannot be read: it ends too early (line 1, column 14)
    its metadata name no issuer:
      POST https://mcp.example/mcp failed: "https://as.example/.well-known/oauth-authorization-server": the metadata of the authorization server "https://as.example" names no issuer: they must be the same, except for a slash after the host. If the server is yours, correct one of them; if you trust it, pin the issuer
    its metadata are of another issuer:
      POST https://mcp.example/mcp failed: "https://as.example/.well-known/oauth-authorization-server": the metadata of the authorization server "https://as.example" names the issuer "https://as.example/x": they must be the same, except for a slash after the host. If the server is yours, correct one of them; if you trust it, pin the issuer
    it has no PKCE:
      POST https://mcp.example/mcp failed: "https://as.example/.well-known/oauth-authorization-server": the metadata of the authorization server "https://as.example" must say that it supports PKCE with S256, and `code_challenge_methods_supported` lists others alone: nobody may be sent there to log in. Have S256 switched on there
    its support of PKCE is not said:
      POST https://mcp.example/mcp failed: "https://as.example/.well-known/oauth-authorization-server": the metadata of the authorization server "https://as.example" must say that it supports PKCE with S256, and `code_challenge_methods_supported` is missing: nobody may be sent there to log in. If you know that it does, set assume_pkce; else have it switched on there
    it has no place to log in:
      POST https://mcp.example/mcp failed: "https://as.example/.well-known/oauth-authorization-server": the metadata of the authorization server "https://as.example" names no `authorization_endpoint`, which this login needs. Have it put right there, or log in in another way
    clients cannot register:
      POST https://mcp.example/mcp failed: "https://as.example/.well-known/oauth-authorization-server": there is no client for the authorization server "https://as.example": its metadata offers neither registrations (`registration_endpoint`) nor ids that are URLs (`client_id_metadata_document_supported`), or none is configured. Have a client registered there, and configure it (`Login::client`, or `ClientOptions::registered`)
    the registration is refused:
      POST https://mcp.example/mcp failed: the registration of a client with redirect URIs ["http://127.0.0.1:4711/callback"] at "https://as.example/register" answered 400, invalid_redirect_uri: no loopback here
    the registration cannot be read:
      POST https://mcp.example/mcp failed: the answer to the registration at "https://as.example/register" cannot be read: a member is missing or has another type than expected (line 1, column 2)
    the answer is an error:
      POST https://mcp.example/mcp failed: the authorization server "https://as.example" did not authorize: access_denied: not today
    the answer is from another issuer:
      POST https://mcp.example/mcp failed: the answer is from "https://evil.example", and "https://as.example" was asked: they must be the same, letter by letter
    the answer does not say whose it is:
      POST https://mcp.example/mcp failed: the answer does not say who gave it (`iss`), and "https://as.example" says that its answers do
    the answer is empty:
      POST https://mcp.example/mcp failed: the answer of "https://as.example" to the authorization request has neither a code nor an error
    the answer is to another request:
      POST https://mcp.example/mcp failed: the answer is not to this authorization request, which was made at "https://as.example": its `state` is missing or another. Log in again
    the token endpoint is down:
      POST https://mcp.example/mcp failed: the token request to "https://as.example/token" answered 503
    the code is refused:
      POST https://mcp.example/mcp failed: the token request to "https://as.example/token" answered 400, invalid_grant
    the token answer cannot be read:
      POST https://mcp.example/mcp failed: the token answer of "https://as.example/token" cannot be read: a member is missing or has another type than expected (line 1, column 27)
    the token is of another type:
      POST https://mcp.example/mcp failed: "https://as.example/token": a token of the type Bearer or DPoP was expected, and one of "mac" came
    the token endpoint redirects:
      POST https://mcp.example/mcp failed: the token request to "https://as.example/token" answered 302
    "#);
}
