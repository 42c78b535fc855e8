//! Tests of discovery: the URLs that are tried, and the responses that are accepted.

use super::*;
use crate::{
    client::{Authorization, Client, ResourceParameter},
    error::AuthErrorKind,
};

const PRM: &str =
    r#"{"resource": "https://mcp.example/mcp", "authorization_servers": ["https://as.example"]}"#;
const PRM_URL: &str = "https://mcp.example/.well-known/oauth-protected-resource/mcp";
const ROOT_PRM_URL: &str = "https://mcp.example/.well-known/oauth-protected-resource";
const META: &str =
    r#"{"issuer": "https://as.example", "token_endpoint": "https://as.example/token"}"#;
const META_URL: &str = "https://as.example/.well-known/oauth-authorization-server";
const OIDC_URL: &str = "https://as.example/.well-known/openid-configuration";

fn announced(url: &str) -> Challenge {
    Challenge::bearer().with("resource_metadata", url)
}

fn with(change: impl FnOnce(&mut DiscoveryOptions)) -> DiscoveryOptions {
    let mut options = DiscoveryOptions::default();
    change(&mut options);
    options
}

#[test]
fn metadata_is_found_at_every_wellknown_url() {
    let plain = || DiscoveryOptions::default();
    let (asked, found) = discover(
        MCP,
        None,
        plain(),
        &[(PRM_URL, 200, PRM), (META_URL, 200, META)],
    );
    assert_eq!(asked, [PRM_URL, META_URL]);
    assert_eq!(found.unwrap().resource.as_deref(), Some(MCP));

    // At the root, without a path, and by OpenID Connect.
    let root =
        r#"{"resource": "https://mcp.example", "authorization_servers": ["https://as.example"]}"#;
    let (asked, found) = discover(
        MCP,
        None,
        plain(),
        &[(ROOT_PRM_URL, 200, root), (OIDC_URL, 200, META)],
    );
    assert_eq!(asked, [PRM_URL, ROOT_PRM_URL, META_URL, OIDC_URL]);
    assert_eq!(
        found.unwrap().resource.as_deref(),
        Some("https://mcp.example"),
        "no slash is added"
    );

    // At a URL that the challenge names, with an issuer with a path.
    let custom = "https://mcp.example/custom/metadata.json";
    let prm = PRM.replace(AS, "https://as.example/tenant");
    let meta = META.replace(AS, "https://as.example/tenant");
    let last = "https://as.example/tenant/.well-known/openid-configuration";
    let challenge = announced(custom);
    let (asked, found) = discover(
        MCP,
        Some(&challenge),
        plain(),
        &[(custom, 200, &prm), (last, 200, &meta)],
    );
    assert_eq!(asked[0], custom);
    assert_eq!(asked.len(), 4);
    assert_eq!(found.unwrap().server.issuer, "https://as.example/tenant");
}

#[test]
fn announced_metadata_url_has_no_fallback() {
    let challenge = announced("https://mcp.example/other");
    let (asked, found) = discover(
        MCP,
        Some(&challenge),
        DiscoveryOptions::default(),
        &[
            (PRM_URL, 200, PRM),
            (ROOT_PRM_URL, 200, PRM),
            (META_URL, 200, META),
        ],
    );
    assert_eq!(asked, ["https://mcp.example/other"]);
    let error = found.unwrap_err();
    assert!(
        error
            .message()
            .contains("https://mcp.example/other returned 404"),
        "{error}"
    );
}

#[test]
fn forbidden_metadata_urls_are_not_requested() {
    for place in [
        "http://mcp.example/x",
        "file:///etc/passwd",
        "http://127.0.0.1/x",
        "https://a:b@mcp.example/",
        "https://mcp.example/x y",
        "/x\"y",
    ] {
        let challenge = announced(place);
        let (asked, found) = discover(MCP, Some(&challenge), DiscoveryOptions::default(), &[]);
        assert!(asked.is_empty() && found.is_err(), "{place}");
    }
    for issuer in [
        "http://as.example",
        "http://localhost:9",
        "https://as.example/#x",
        "as.example",
    ] {
        let prm = PRM.replace(AS, issuer);
        let (asked, found) = discover(
            MCP,
            None,
            DiscoveryOptions::default(),
            &[(PRM_URL, 200, &prm)],
        );
        assert!(asked.len() == 1 && found.is_err(), "{issuer}");
    }
}

// Attack: mix-up of authorization servers.
#[test]
fn foreign_resource_metadata_is_refused_before_any_request() {
    let prm = PRM.replace(MCP, "https://evil.example.com/mcp");
    let (asked, found) = discover(
        MCP,
        None,
        DiscoveryOptions::default(),
        &[(PRM_URL, 200, &prm), (META_URL, 200, META)],
    );
    assert_eq!(asked, [PRM_URL]);
    assert_eq!(found.unwrap_err().kind(), AuthErrorKind::Untrusted);
}

// Attack: mix-up of authorization servers.
#[test]
fn foreign_issuer_in_metadata_ends_discovery() {
    let meta = META.replace("\"https://as.example\"", "\"https://as.example/x\"");
    let web: Web<'_> = &[
        (PRM_URL, 200, PRM),
        (META_URL, 200, &meta),
        (OIDC_URL, 200, META),
    ];
    let (asked, found) = discover(MCP, None, DiscoveryOptions::default(), web);
    assert_eq!(asked, [PRM_URL, META_URL], "no other place is asked");
    let error = found.unwrap_err();
    assert!(
        error.message().contains("\"https://as.example/x\"")
            && error.message().contains("\"https://as.example\"")
    );
}

#[test]
fn server_errors_end_discovery() {
    for status in [500, 503, 504, 301, 302, 204] {
        for web in [
            [(PRM_URL, status, ""), (META_URL, 200, META)],
            [(PRM_URL, 200, PRM), (META_URL, status, "")],
        ] {
            let (_, found) = discover(MCP, None, DiscoveryOptions::default(), &web);
            let error = found.unwrap_err();
            assert!(error.message().contains(&status.to_string()), "{error}");
            assert_eq!(error.kind() == AuthErrorKind::Unavailable, status >= 500);
        }
    }
    for status in [400, 401, 403, 405, 410, 502] {
        let web = [
            (PRM_URL, 200, PRM),
            (META_URL, status, ""),
            (OIDC_URL, 200, META),
        ];
        let (_, found) = discover(MCP, None, DiscoveryOptions::default(), &web);
        assert!(found.is_ok(), "{status}");
    }
}

// Attack: credentials that are sent to guessed endpoints.
#[test]
fn default_endpoints_require_404_for_all_metadata() {
    let origin = "https://mcp.example/.well-known/oauth-authorization-server";
    let plain = DiscoveryOptions::default;
    let (asked, found) = discover(MCP, None, plain(), &[]);
    assert_eq!(asked.len(), 4);
    assert_eq!(asked[2], origin);
    let found = found.unwrap();
    assert!(found.is_default);
    assert_eq!(
        found.server.token_endpoint().unwrap(),
        "https://mcp.example/token"
    );
    assert_eq!(found.resource.as_deref(), Some(MCP));

    // Metadata at the origin, as in revision 2025-03-26.
    let meta = META.replace(AS, "https://mcp.example");
    let (_, found) = discover(MCP, None, plain(), &[(origin, 200, &meta)]);
    assert!(!found.unwrap().is_default);

    // After any other response the metadata may have been hidden by an attacker.
    let html = "<!doctype html>";
    for (place, status) in [
        (PRM_URL, 403),
        (ROOT_PRM_URL, 200),
        (PRM_URL, 502),
        (origin, 401),
        (origin, 500),
        (origin, 200),
    ] {
        let (asked, found) = discover(MCP, None, plain(), &[(place, status, html)]);
        assert!(found.is_err(), "{place} {status}");
        let asks_origin = asked.iter().any(|it| it == origin);
        assert_eq!(asks_origin, place == origin, "{place} {status}");
    }
    let (asked, found) = discover(
        MCP,
        None,
        with(|it| it.without_default_endpoints = true),
        &[],
    );
    assert!(asked.len() == 2 && found.is_err());
}

#[test]
fn origin_requests_state_the_revision() {
    let mut discovery = Discovery::new(MCP, None, DiscoveryOptions::default()).unwrap();
    let (asked, _) = run(&mut discovery, |_| response(404, ""));
    let revisions = asked
        .iter()
        .map(|it| it.headers().contains_key("mcp-protocol-version"));
    assert_eq!(revisions.collect::<Vec<_>>(), [false, false, true, true]);
}

#[test]
fn html_front_pages_are_not_metadata() {
    let html = "<!doctype html><title>{</title>";
    let web = [
        (PRM_URL, 200, html),
        (ROOT_PRM_URL, 200, PRM),
        (META_URL, 200, html),
        (OIDC_URL, 200, META),
    ];
    let (_, found) = discover(MCP, None, DiscoveryOptions::default(), &web);
    assert!(found.is_ok());
}

#[test]
fn of_several_servers_the_preferred_one_is_asked() {
    let prm = PRM.replace(
        "[\"https://as.example\"]",
        "[\"https://other.example\", \"https://as.example\"]",
    );
    let web: Web<'_> = &[(PRM_URL, 200, &prm), (META_URL, 200, META)];
    let preferred =
        with(|it| it.preferred_issuers = vec!["https://gone.example".to_owned(), AS.to_owned()]);
    let (_, found) = discover(MCP, None, preferred, web);
    assert_eq!(found.unwrap().server.issuer, AS);
    let (asked, _) = discover(MCP, None, DiscoveryOptions::default(), web);
    assert!(asked[1].starts_with("https://other.example/"));
    let none = PRM.replace("\"https://as.example\"", "");
    let (_, found) = discover(
        MCP,
        None,
        DiscoveryOptions::default(),
        &[(PRM_URL, 200, &none)],
    );
    assert!(
        found
            .unwrap_err()
            .message()
            .contains("authorization_servers")
    );
}

#[test]
fn resource_is_exactly_as_advertised_or_configured() {
    let web: Web<'_> = &[
        (PRM_URL, 200, &PRM.replace(MCP, "https://MCP.example/mcp/")),
        (META_URL, 200, META),
    ];
    let resource = |parameter| {
        discover(MCP, None, with(|it| it.resource = parameter), web)
            .1
            .unwrap()
            .resource
    };
    assert_eq!(
        resource(ResourceParameter::Discovered).as_deref(),
        Some("https://MCP.example/mcp/")
    );
    assert_eq!(
        resource(ResourceParameter::Fixed("api://x".to_owned())).as_deref(),
        Some("api://x")
    );
    assert_eq!(resource(ResourceParameter::Omitted), None);
    // Without metadata the parameter is the server's URL, without the slash of an empty path.
    for (url, expected) in [
        ("https://mcp.example/#x", "https://mcp.example"),
        ("https://mcp.example", "https://mcp.example"),
        ("https://mcp.example/mcp/", "https://mcp.example/mcp/"),
        ("https://mcp.example/?key=hunter2", "https://mcp.example"),
        (
            "https://mcp.example/mcp?key=hunter2",
            "https://mcp.example/mcp",
        ),
    ] {
        let (_, found) = discover(url, None, DiscoveryOptions::default(), &[]);
        assert_eq!(found.unwrap().resource.as_deref(), Some(expected));
    }
}

#[test]
fn server_query_never_appears_in_errors() {
    let server = "https://mcp.example/mcp?key=hunter2";
    let place = "https://mcp.example/.well-known/oauth-protected-resource/mcp?key=hunter2";
    let other = PRM.replace(MCP, "https://evil.example/");
    let nobody = r#"{"resource": "https://mcp.example/mcp"}"#;
    for (status, body) in [
        (503, ""),
        (400, ""),
        (200, "{"),
        (200, other.as_str()),
        (200, nobody),
    ] {
        let web: Web<'_> = &[(place, status, body)];
        let options = with(|it| it.without_default_endpoints = true);
        let error = discover(server, None, options, web).1.unwrap_err();
        assert!(!format!("{error:?}").contains("hunter2"), "{error}");
    }
}

#[test]
fn loopback_is_found_from_loopback() {
    let mcp = "http://127.0.0.1:3000/mcp";
    let prm = r#"{"resource": "http://127.0.0.1:3000/mcp", "authorization_servers": ["http://localhost:4000"]}"#;
    let meta =
        r#"{"issuer": "http://localhost:4000", "token_endpoint": "http://localhost:4000/token"}"#;
    let web: Web<'_> = &[
        (
            "http://127.0.0.1:3000/.well-known/oauth-protected-resource/mcp",
            200,
            prm,
        ),
        (
            "http://localhost:4000/.well-known/oauth-authorization-server",
            200,
            meta,
        ),
    ];
    assert!(
        discover(mcp, None, DiscoveryOptions::default(), web)
            .1
            .is_ok()
    );
}

#[test]
fn configured_s256_support_fills_missing_metadata() {
    let meta = |methods: &str| {
        format!(
            r#"{{"issuer": "https://as.example", "authorization_endpoint": "https://as.example/authorize"{methods}}}"#
        )
    };
    let endpoint = |options: DiscoveryOptions, methods: &str| {
        let meta = meta(methods);
        let (_, found) = discover(
            MCP,
            None,
            options,
            &[(PRM_URL, 200, PRM), (META_URL, 200, &meta)],
        );
        let server = found.unwrap().server;
        server.authorization_endpoint().map(str::to_owned)
    };
    let assume = || with(|it| it.assume_pkce = true);
    let nothing = "";
    let plain = r#", "code_challenge_methods_supported": ["plain"]"#;
    let refused = endpoint(DiscoveryOptions::default(), nothing).unwrap_err();
    assert!(refused.to_string().contains("assume_pkce"), "{refused}");
    let taken = endpoint(assume(), nothing).unwrap();
    assert_eq!(taken, "https://as.example/authorize");
    endpoint(assume(), plain).unwrap_err();
}

#[test]
fn finished_conversation_reports_it() {
    let mut discovery = Discovery::new(MCP, None, DiscoveryOptions::default()).unwrap();
    let _ = discovery.receive(&response(200, PRM), NOW);
    assert!(
        discovery
            .receive(&response(200, META), NOW)
            .unwrap()
            .is_some()
    );
    assert!(discovery.request(NOW).is_err());
    assert!(discovery.receive(&response(200, META), NOW).is_err());
}

#[test]
fn metadata_issuer_matches_except_host_slash() {
    for (named, says) in [
        ("https://as.example", "https://as.example/"),
        ("https://as.example/", "https://as.example"),
    ] {
        let prm = PRM.replace(AS, named);
        let meta = format!(
            r#"{{"issuer": {says:?}, "authorization_endpoint": "https://as.example/authorize",
                "code_challenge_methods_supported": ["S256"]}}"#
        );
        let web: Web<'_> = &[(PRM_URL, 200, &prm), (META_URL, 200, &meta)];
        let (_, found) = discover(MCP, None, DiscoveryOptions::default(), web);
        let found = found.unwrap();
        assert_eq!(found.server.issuer, says);
        // From then on the match is exact.
        let client = Client::new("c").unwrap().issued_by(named);
        let attempt = Authorization::new(&found, &client, "http://127.0.0.1:1/").begin();
        let attempt = attempt.unwrap();
        let answer = |iss: &str| {
            let state = attempt.state().expose();
            attempt.finish(&format!("?code=c&state={state}&iss={iss}"))
        };
        assert!(answer(says).is_ok());
        assert_eq!(answer(named).unwrap_err().kind(), AuthErrorKind::Untrusted);
        let pinned = with(|it| it.issuer = Some(says.to_owned()));
        let (_, found) = discover(MCP, None, pinned, web);
        assert_eq!(found.unwrap().server.issuer, says);
    }
}

#[test]
fn issuer_with_credentials_is_preferred_in_either_spelling() {
    let prm = PRM.replace(AS, "https://other.example\", \"https://as.example");
    let web: Web<'_> = &[(PRM_URL, 200, &prm), (META_URL, 200, META)];
    let options = with(|it| it.preferred_issuers = vec!["https://as.example/".to_owned()]);
    let (asked, _) = discover(MCP, None, options, web);
    assert_eq!(asked, [PRM_URL, META_URL]);
}

#[test]
fn announced_metadata_url_may_be_relative_or_empty() {
    for place in ["/.well-known/oauth-protected-resource/mcp", PRM_URL, ""] {
        let web: Web<'_> = &[(PRM_URL, 200, PRM), (META_URL, 200, META)];
        let (asked, found) = discover(
            MCP,
            Some(&announced(place)),
            DiscoveryOptions::default(),
            web,
        );
        assert_eq!(asked, [PRM_URL, META_URL], "{place}");
        assert!(found.is_ok());
    }
}

#[test]
fn endpoints_with_characters_outside_of_urls_are_refused() {
    for name in ["authorization_endpoint", "token_endpoint", "jwks_uri"] {
        let meta =
            format!(r#"{{"issuer": {AS:?}, {name:?}: "https://as.example/\"; touch x; \""}}"#);
        let web: Web<'_> = &[(PRM_URL, 200, PRM), (META_URL, 200, &meta)];
        let (_, found) = discover(MCP, None, DiscoveryOptions::default(), web);
        assert_eq!(
            found.unwrap_err().kind(),
            AuthErrorKind::Malformed,
            "{name}"
        );
    }
}

#[test]
fn oddities_are_noted_without_values() {
    let prm = format!("\u{feff}{{\"resource\": {MCP:?}, \"authorization_servers\": {AS:?}}}");
    let meta = format!(r#"{{"issuer": "{AS}/", "scopes_supported": "hunter2"}}"#);
    let mut discovery = Discovery::new(MCP, None, DiscoveryOptions::default()).unwrap();
    let (_, found) = run(&mut discovery, |request| {
        let is_resource = request.uri() == PRM_URL;
        response(200, if is_resource { &prm } else { &meta })
    });
    assert!(found.is_ok());
    let noted = discovery.tolerated();
    let members: Vec<_> = noted.iter().map(|it| it.member.as_str()).collect();
    assert_eq!(
        members,
        [
            "byte order mark",
            "authorization_servers",
            "scopes_supported",
            "issuer"
        ]
    );
    assert!(!format!("{noted:?}").contains("hunter2"));
    assert!(discovery.tolerated().is_empty());
}
