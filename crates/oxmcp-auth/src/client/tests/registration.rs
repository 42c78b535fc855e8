//! Tests of the choice of a client, and of registration.

use super::*;
use crate::{
    client::{Client, ClientChoice, ClientMetadata, ClientOptions, Registration, choose_client},
    error::AuthErrorKind,
    scope::ScopeSet,
};

const REDIRECT: &str = "http://127.0.0.1:4711/callback";

fn metadata() -> ClientMetadata {
    ClientMetadata::new("me", [REDIRECT]).unwrap()
}

fn register(
    server: &AuthorizationServerMetadata,
    status: u16,
    answer: &str,
) -> (serde_json::Value, Result<Client>) {
    let mut registration = Registration::new(server, metadata(), &ScopeSet::parse("a")).unwrap();
    let (asked, result) = run(&mut registration, |_| response(status, answer));
    (
        serde_json::from_slice(asked[0].body().as_ref()).unwrap(),
        result,
    )
}

/// The choice, as a word.
fn choose(server: &AuthorizationServerMetadata, options: &ClientOptions) -> Result<String> {
    let choice = choose_client(server, options, Some(REDIRECT), &ScopeSet::new(), NOW)?;
    Ok(match choice {
        ClientChoice::Ready(client) => client.id().to_owned(),
        ClientChoice::Register(_) => "register".to_owned(),
    })
}

#[test]
fn clients_are_chosen_in_specification_order() {
    let url = "https://client.example/oauth.json";
    let mut options = ClientOptions {
        registered: vec![Client::new("by hand").unwrap().issued_by(AS)],
        document: Some(Client::from_document_url(url).unwrap()),
        dynamic: Some(metadata()),
    };
    let mut server = server();
    server.client_id_metadata_document_supported = true;
    assert_eq!(choose(&server, &options).unwrap(), "by hand");
    options.registered.clear();
    assert_eq!(choose(&server, &options).unwrap(), url);
    server.client_id_metadata_document_supported = false;
    assert_eq!(choose(&server, &options).unwrap(), "register");
    server.registration_endpoint = None;
    assert_eq!(
        choose(&server, &options).unwrap_err().kind(),
        AuthErrorKind::Configuration
    );
}

// Attack: mix-up of authorization servers.
#[test]
fn client_of_another_issuer_is_never_used() {
    let options = ClientOptions {
        registered: vec![
            Client::new("theirs")
                .unwrap()
                .with_secret("x")
                .issued_by("https://old.example"),
        ],
        ..ClientOptions::default()
    };
    let error = choose(&server(), &options).unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Untrusted);
    assert!(error.message().contains("https://old.example") && error.message().contains(AS));
    let options = ClientOptions {
        dynamic: Some(metadata()),
        ..options
    };
    assert_eq!(choose(&server(), &options).unwrap(), "register");
}

#[test]
fn registration_is_reused_for_its_redirect_until_expiry() {
    let (_, client) = register(
        &server(),
        201,
        r#"{"client_id": "c", "client_secret_expires_at": 1800000100}"#,
    );
    let client = client.unwrap();
    assert!(client.is_usable(AS, Some(REDIRECT), NOW));
    assert!(client.is_usable(AS, None, NOW));
    assert!(!client.is_usable(AS, Some("http://127.0.0.1:4712/callback"), NOW));
    assert!(!client.is_usable("https://other.example", Some(REDIRECT), NOW));
    assert!(!client.is_usable(AS, Some(REDIRECT), NOW.plus(100)));
    let (_, client) = register(
        &server(),
        201,
        r#"{"client_id": "c", "client_secret_expires_at": 0}"#,
    );
    assert!(
        client
            .unwrap()
            .is_usable(AS, Some(REDIRECT), NOW.plus(1 << 40))
    );
}

#[test]
fn registration_describes_the_client() {
    let (sent, _) = register(&server(), 201, r#"{"client_id": "c"}"#);
    let expected = serde_json::json!({
        "client_name": "me",
        "redirect_uris": [REDIRECT],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "application_type": "native",
        "token_endpoint_auth_method": "none",
        "scope": "a",
    });
    assert_eq!(sent, expected);
    let web = ClientMetadata::new("me", ["https://app.example/callback"]).unwrap();
    assert!(
        web.document("https://app.example/oauth.json")
            .unwrap()
            .contains(r#""application_type":"web""#)
    );
    assert!(web.document("https://app.example").is_err());
    assert!(web.document("http://app.example/oauth.json").is_err());
}

#[test]
fn authentication_method_is_one_the_server_offers() {
    for (offered, expected) in [
        (None, Some("client_secret_basic")),
        (
            Some(vec!["client_secret_post", "client_secret_basic"]),
            Some("client_secret_basic"),
        ),
        (Some(vec!["client_secret_post"]), Some("client_secret_post")),
        (Some(vec!["client_secret_post", "none"]), Some("none")),
        (Some(vec!["private_key_jwt"]), None),
    ] {
        let mut server = server();
        server.token_endpoint_auth_methods_supported =
            offered.map(|all| all.iter().map(|it| (*it).to_owned()).collect());
        let registration = Registration::new(&server, metadata(), &ScopeSet::new());
        let method = registration.ok().map(|mut it| {
            let body: serde_json::Value =
                serde_json::from_slice(it.request(NOW).unwrap().body().as_ref()).unwrap();
            body["token_endpoint_auth_method"]
                .as_str()
                .unwrap()
                .to_owned()
        });
        assert_eq!(method.as_deref(), expected);
    }
}

#[test]
fn registered_method_overrides_presence_of_a_secret() {
    for (answer, expected) in [
        (r#"{"client_id": "c", "client_secret": "hunter2"}"#, "none"),
        (
            r#"{"client_id": "c", "client_secret": "hunter2", "token_endpoint_auth_method": "none"}"#,
            "none",
        ),
        (
            r#"{"client_id": "c", "client_secret": "hunter2", "token_endpoint_auth_method": "client_secret_post"}"#,
            "client_secret_post",
        ),
        (
            r#"{"client_id": "c", "client_secret": "hunter2", "token_endpoint_auth_method": "client_secret_basic"}"#,
            "client_secret_basic",
        ),
    ] {
        let client = register(&server(), 201, answer).1.unwrap();
        assert_eq!(format!("{:?}", client.authentication()), expected);
        assert!(!format!("{client:?}").contains("hunter2"));
    }
    for bad in [
        "",
        "[]",
        "{}",
        r#"{"client_id": ""}"#,
        r#"{"client_id": "a\r\nb"}"#,
        r#"{"client_id": "c", "client_id": "d"}"#,
        r#"{"client_id": "c", "client_secret": "hunter2", "token_endpoint_auth_method": "tls_client_auth"}"#,
    ] {
        let error = register(&server(), 201, bad).1.unwrap_err();
        assert!(!error.message().contains("hunter2"));
    }
}

#[test]
fn registration_without_secret_is_a_public_client() {
    for method in ["client_secret_post", "client_secret_basic"] {
        for secret in ["", r#", "client_secret": null"#, r#", "client_secret": """#] {
            let answer = format!(
                r#"{{"client_id": "c", "token_endpoint_auth_method": {method:?}{secret}}}"#
            );
            let client = register(&server(), 201, &answer).1.unwrap();
            assert!(!client.is_confidential(), "{answer}");
        }
    }
}

#[test]
fn odd_registration_answers_are_read() {
    for (answer, id, is_usable_later) in [
        (r#"{"client_id": 42}"#, "42", true),
        (
            r#"{"client_id": "c", "client_secret": null, "client_secret_expires_at": null, "token_endpoint_auth_method": null}"#,
            "c",
            true,
        ),
        (
            r#"{"client_id": "c", "client_secret_expires_at": "0", "token_endpoint_auth_method": ""}"#,
            "c",
            true,
        ),
        (
            r#"{"client_id": "c", "client_secret_expires_at": "never"}"#,
            "c",
            true,
        ),
        (
            r#"{"client_id": "c", "client_secret_expires_at": "1"}"#,
            "c",
            false,
        ),
        (
            "\u{feff}{\"client_id\": \"c\", \"client_secret\": {}}",
            "c",
            true,
        ),
    ] {
        let client = register(&server(), 200, answer).1.unwrap();
        assert_eq!(client.id(), id);
        assert_eq!(client.is_usable(AS, None, NOW), is_usable_later, "{answer}");
    }
    let error = register(&server(), 200, r#"{"error": "access_denied"}"#).1;
    assert_eq!(error.unwrap_err().oauth_error(), Some("access_denied"));
}

#[test]
fn refused_registration_error_shows_request_and_response() {
    let answer =
        r#"{"error": "invalid_redirect_uri", "error_description": "loopback is not for web"}"#;
    let error = register(&server(), 400, answer).1.unwrap_err();
    assert_eq!(error.oauth_error(), Some("invalid_redirect_uri"));
    for part in [
        REDIRECT,
        "https://as.example/register",
        "400",
        "loopback is not for web",
    ] {
        assert!(error.message().contains(part), "{error}");
    }
}
