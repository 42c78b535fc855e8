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
async fn fault_messages_name_place_and_hide_secrets() {
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
      POST https://mcp.example/mcp failed: expected a metadata document at "https://mcp.example/.well-known/oauth-protected-resource/mcp", but got 503
    the resource's metadata are cut off:
      POST https://mcp.example/mcp failed: "https://mcp.example/.well-known/oauth-protected-resource/mcp": invalid protected resource metadata: JSON is cut off
    the metadata are of another resource:
      POST https://mcp.example/mcp failed: "https://mcp.example/.well-known/oauth-protected-resource/mcp": protected resource metadata is for "https://evil.example/", not for the MCP server "https://mcp.example/mcp"; connect to that URL, or correct `resource` in the metadata
    no authorization server is named:
      POST https://mcp.example/mcp failed: "https://mcp.example/.well-known/oauth-protected-resource/mcp": metadata of "https://mcp.example/mcp" names no authorization server (`authorization_servers`); add it there, or configure the issuer
    the metadata redirect without end:
      POST https://mcp.example/mcp failed: https://as.example/.well-known/oauth-authorization-server redirects more than 3 times in a row
    the metadata redirect to plain http:
      POST https://mcp.example/mcp failed: invalid URL that https://as.example/.well-known/oauth-authorization-server redirects to "http://as.example/": must be https
    the metadata redirect into this network:
      POST https://mcp.example/mcp failed: request to https://169.254.169.254/ failed: 169.254.169.254 is at 169.254.169.254, which is not a public address; if you trust it, allow it with `Login::trust_host` or `TrustedIssuer::keys_at`
    the metadata are too long:
      POST https://mcp.example/mcp failed: request to https://as.example/.well-known/oauth-authorization-server failed: the response from https://as.example/.well-known/oauth-authorization-server exceeds the limit of 1048576 bytes
    the authorization server has no metadata:
      POST https://mcp.example/mcp failed: could not find the metadata of the authorization server "https://as.example": https://as.example/.well-known/oauth-authorization-server returned 404, https://as.example/.well-known/openid-configuration returned 404; check the URL, or configure the issuer
    its metadata are a list:
      POST https://mcp.example/mcp failed: could not find the metadata of the authorization server "https://as.example": https://as.example/.well-known/oauth-authorization-server returned 200 without a JSON object, https://as.example/.well-known/openid-configuration returned 404; check the URL, or configure the issuer
    its metadata cannot be read:
      POST https://mcp.example/mcp failed: "https://as.example/.well-known/oauth-authorization-server": invalid authorization server metadata: JSON is cut off
    its metadata name no issuer:
      POST https://mcp.example/mcp failed: "https://as.example/.well-known/oauth-authorization-server": issuer mismatch: the metadata of the authorization server "https://as.example" names no issuer; correct one of them, or configure the issuer if you trust the server
    its metadata are of another issuer:
      POST https://mcp.example/mcp failed: "https://as.example/.well-known/oauth-authorization-server": issuer mismatch: the metadata of the authorization server "https://as.example" names the issuer "https://as.example/x"; correct one of them, or configure the issuer if you trust the server
    it has no PKCE:
      POST https://mcp.example/mcp failed: "https://as.example/.well-known/oauth-authorization-server": authorization server "https://as.example" does not advertise PKCE with S256: `code_challenge_methods_supported` lists only other methods; enable S256 on the server
    its support of PKCE is not said:
      POST https://mcp.example/mcp failed: "https://as.example/.well-known/oauth-authorization-server": authorization server "https://as.example" does not advertise PKCE with S256: `code_challenge_methods_supported` is missing; enable it on the server, or set `assume_pkce` if you know that the server supports S256
    it has no place to log in:
      POST https://mcp.example/mcp failed: "https://as.example/.well-known/oauth-authorization-server": authorization server "https://as.example" has no `authorization_endpoint` in its metadata; add it there, or log in another way
    clients cannot register:
      POST https://mcp.example/mcp failed: "https://as.example/.well-known/oauth-authorization-server": no client for the authorization server "https://as.example": dynamic registration (`registration_endpoint`) and client ID metadata documents (`client_id_metadata_document_supported`) are not offered or not configured; register a client there, and configure it with `Login::client` or `ClientOptions::registered`
    the registration is refused:
      POST https://mcp.example/mcp failed: registration with redirect URIs ["http://127.0.0.1:4711/callback"] at "https://as.example/register" failed with 400, invalid_redirect_uri: no loopback here
    the registration cannot be read:
      POST https://mcp.example/mcp failed: invalid registration response from "https://as.example/register": a member is missing or has the wrong type
    the answer is an error:
      POST https://mcp.example/mcp failed: authorization server "https://as.example" refused the login: access_denied: not today
    the answer is from another issuer:
      POST https://mcp.example/mcp failed: issuer mismatch: authorization response is from "https://evil.example"; expected "https://as.example"
    the answer does not say whose it is:
      POST https://mcp.example/mcp failed: authorization response has no `iss`, although the metadata of "https://as.example" advertises it
    the answer is empty:
      POST https://mcp.example/mcp failed: authorization response from "https://as.example" has neither a code nor an error
    the answer is to another request:
      POST https://mcp.example/mcp failed: authorization response does not belong to the request to "https://as.example": `state` is missing or wrong; log in again
    the token endpoint is down:
      POST https://mcp.example/mcp failed: token request to "https://as.example/token" failed with 503
    the code is refused:
      POST https://mcp.example/mcp failed: token request to "https://as.example/token" failed with 400, invalid_grant
    the token answer cannot be read:
      POST https://mcp.example/mcp failed: invalid token response from "https://as.example/token": a member is missing or has the wrong type
    the token is of another type:
      POST https://mcp.example/mcp failed: "https://as.example/token": unsupported token type "mac"; expected `Bearer` or `DPoP`
    the token endpoint redirects:
      POST https://mcp.example/mcp failed: token request to "https://as.example/token" failed with 302
    "#);
}
