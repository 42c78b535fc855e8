//! Tests of the checks of hosts, origins and the head of a request.

use super::{
    super::*,
    request::{LIMIT, Sent},
};

fn policy(hosts: &[&str], origins: &[&str]) -> Policy {
    let mut policy = Policy::default();
    policy.allow_hosts(hosts.iter().copied());
    policy.allow_origins(origins.iter().copied());
    policy.check().unwrap();
    policy
}

fn lets_in(policy: &Policy, host: &str, origin: Option<&str>) -> bool {
    let mut sent = Sent::post("").with("host", host);
    if let Some(origin) = origin {
        sent.set("origin", origin);
    }
    check_access(policy, &sent.parts()).is_ok()
}

// Attack: DNS rebinding.
#[test]
fn only_loopback_hosts_are_allowed_by_default() {
    let table = [
        ("localhost", true),
        ("LocalHost:8080", true),
        ("127.0.0.1:3000", true),
        ("127.8.7.6", true),
        ("[::1]", true),
        ("[::1]:8080", true),
        ("[::ffff:127.0.0.1]:80", true),
        ("evil.example", false),
        ("localhost.evil.example", false),
        ("127.0.0.1.evil.example", false),
        ("evil.example:8080", false),
        ("192.168.0.1", false),
        ("0.0.0.0", false),
        ("[::]", false),
        ("[::2]:8080", false),
        ("localhost:port", false),
        ("localhost:", false),
        ("localhost:99999", false),
        ("localhost:+80", false),
        ("[::1]x", false),
        ("user@localhost", false),
        ("localhost/x", false),
        ("[localhost]", false),
        ("[::1", false),
        ("", false),
    ];
    for (host, fits) in table {
        assert_eq!(lets_in(&Policy::default(), host, None), fits, "{host}");
    }
}

// Attack: DNS rebinding.
#[test]
fn only_loopback_origins_are_allowed_by_default() {
    let table = [
        ("http://localhost:6274", true),
        ("https://127.0.0.1", true),
        ("http://[::1]:8080", true),
        ("http://evil.example", false),
        ("http://localhost.evil.example", false),
        ("null", false),
        ("", false),
        ("file://", false),
        ("chrome-extension://localhost", false),
        ("http://localhost http://evil.example", false),
    ];
    for (origin, fits) in table {
        let found = lets_in(&Policy::default(), "localhost:1", Some(origin));
        assert_eq!(found, fits, "{origin}");
    }
}

#[test]
fn deployment_lists_its_hosts_and_origins() {
    let listed = policy(
        &[
            "mcp.example.com",
            "other.example:8443",
            "[2001:db8:0:0:0:0:0:1]",
        ],
        &["https://app.example.com", "vscode-webview://abc"],
    );
    let table = [
        ("mcp.example.com", None, true),
        ("MCP.example.com:8080", None, true),
        ("other.example:8443", None, true),
        ("other.example", None, false),
        ("localhost", None, false),
        ("[2001:DB8::1]:80", None, true),
        ("[2001:db8::2]", None, false),
        ("mcp.example.com", Some("https://app.example.com"), true),
        ("mcp.example.com", Some("https://app.example.com:443"), true),
        (
            "mcp.example.com",
            Some("https://app.example.com:8443"),
            false,
        ),
        ("mcp.example.com", Some("http://app.example.com"), false),
        ("mcp.example.com", Some("vscode-webview://abc"), true),
        ("mcp.example.com", Some("http://localhost:3000"), false),
        // Pages of the host itself.
        ("mcp.example.com", Some("https://mcp.example.com"), true),
        ("mcp.example.com:443", Some("https://mcp.example.com"), true),
        ("mcp.example.com", Some("https://other.example:8443"), false),
        (
            "mcp.example.com",
            Some("chrome-extension://mcp.example.com"),
            false,
        ),
    ];
    for (host, origin, fits) in table {
        assert_eq!(lets_in(&listed, host, origin), fits, "{host} {origin:?}");
    }
}

#[test]
fn allowing_any_host_allows_no_other_origin() {
    let any = policy(&["*"], &[]);
    assert!(lets_in(&any, "evil.example", None));
    assert!(!lets_in(&any, ":80", None), "that is not a host");
    assert!(
        !lets_in(&any, "evil.example", Some("http://evil.example")),
        "a name that the page chose proves nothing"
    );
    let open = policy(&["*"], &["*"]);
    assert!(lets_in(&open, "evil.example", Some("null")));
}

#[test]
fn invalid_host_or_origin_setting_is_named() {
    let mut policy = Policy::default();
    policy.allow_hosts(["localhost", "https://example.com"]);
    let error = policy.check().unwrap_err().to_string();
    assert!(
        error.contains("cannot parse \"https://example.com\""),
        "{error}"
    );
    assert!(
        !lets_in(&policy, "localhost", None),
        "an invalid list allows nothing"
    );
    for wrong in ["example.com", "://example.com"] {
        let mut policy = Policy::default();
        policy.allow_origins([wrong]);
        let error = policy.check().unwrap_err().to_string();
        assert!(error.contains(&format!("{wrong:?}")), "{error}");
    }
}

#[test]
fn duplicate_host_is_refused() {
    let host = |sent: &Sent, uri: &str| {
        let mut parts = sent.parts();
        parts.uri = uri.parse().unwrap();
        check_access(&Policy::default(), &parts).map_err(|refusal| refusal.check)
    };
    let none = Sent::post("").without("host");
    assert_eq!(host(&none, "/mcp"), Err(Check::Host));
    assert_eq!(host(&none, "http://localhost:1/mcp"), Ok(()), "HTTP/2");
    assert_eq!(host(&none, "http://evil.example/mcp"), Err(Check::Host));
    let one = Sent::post("").with("host", "localhost:1");
    assert_eq!(host(&one, "http://LOCALHOST:1/mcp"), Ok(()));
    assert_eq!(host(&one, "http://localhost:2/mcp"), Err(Check::Host));
    for (name, check) in [("host", Check::Host), ("origin", Check::Origin)] {
        let mut two = one.clone();
        let value = if name == "host" {
            "localhost:1"
        } else {
            "http://localhost:1"
        };
        two.headers.retain(|(it, _)| it != name);
        two.headers.push((name.into(), value.into()));
        two.headers.push((name.into(), value.into()));
        assert_eq!(host(&two, "/mcp"), Err(check));
    }
}

#[test]
fn media_types_are_ranges_and_have_parameters() {
    let check = |sent: Sent| {
        check_head(LIMIT, &sent.parts())
            .err()
            .map(|refusal| refusal.check)
    };
    let check_strictly = |sent: &Sent| {
        let parts = sent.parts();
        check_accept(&parts, Accepted::of(&parts.headers)).is_ok()
    };
    for (accept, is_served, fits) in [
        ("text/event-stream, application/json", true, true),
        ("application/json;q=0.9,text/event-stream;q=0.1", true, true),
        ("*/*", true, true),
        ("application/*, text/*", true, true),
        ("Application/JSON, TEXT/Event-Stream", true, true),
        ("application/json", true, false),
        ("text/event-stream", true, false),
        ("application/json, text/event-stream;q=0", true, false),
        ("application/jsonp, text/event-stream", true, false),
        ("", true, false),
        ("application/jsonp", false, false),
        ("text/html, image/*", false, false),
        ("application/json;q=0, text/event-stream;q=0", false, false),
    ] {
        let sent = Sent::post("").with("accept", accept);
        assert_eq!(check_strictly(&sent), fits, "{accept}");
        let expected = (!is_served).then_some(Check::Accept);
        assert_eq!(check(sent), expected, "{accept}");
    }
    for (kind, fits) in [
        ("application/json", true),
        ("Application/JSON; charset=UTF-8", true),
        ("application/json;charset=\"utf-8\"", true),
        ("application/json; charset=utf-16", false),
        ("application/json-rpc", false),
        ("text/plain", false),
        ("application/json, text/plain", false),
        ("", false),
    ] {
        let sent = Sent::post("").with("content-type", kind);
        let expected = (!fits).then_some(Check::ContentType);
        assert_eq!(check(sent), expected, "{kind}");
    }
    for (verb, accept, expected) in [
        ("GET", "text/event-stream", None),
        ("GET", "application/json", Some(Check::Accept)),
        ("DELETE", "", None),
        ("OPTIONS", "*/*", Some(Check::HttpMethod)),
    ] {
        let mut sent = Sent::post("").without("content-type");
        sent.verb = verb;
        assert_eq!(check(sent.with("accept", accept)), expected, "{verb}");
    }
    let bare = Sent::post("").without("accept");
    assert!(!check_strictly(&bare));
    assert_eq!(check(bare), None);
    let exact = Sent::post("").with("content-length", "4194304");
    assert_eq!(check(exact), None);
    let long = Sent::post("").with("content-length", "4194305");
    assert_eq!(check(long), Some(Check::BodyLength));
}

#[test]
fn refused_host_error_suggests_the_setting() {
    let parts = Sent::post("").with("host", "mcp.example.com").parts();
    let refusal = check_access(&Policy::default(), &parts).unwrap_err();
    let message = &refusal.error.message;
    assert!(message.contains("mcp.example.com"), "{message}");
    assert!(message.contains("allowed_hosts"), "{message}");
}

#[test]
fn only_listed_origins_receive_cors_headers() {
    let listed = policy(&[], &["https://app.example.com", "http://localhost:3000"]);
    for (origin, is_listed) in [
        ("https://app.example.com", true),
        ("https://app.example.com:443", true),
        ("http://localhost:3000", true),
        ("http://localhost:3001", false),
        ("https://app.example.com.evil.example", false),
        ("null", false),
        ("*", false),
    ] {
        assert_eq!(listed.lists_origin(origin), is_listed, "{origin}");
    }
    for policy in [Policy::default(), policy(&["*"], &["*"])] {
        assert!(!policy.lists_origin("http://localhost:3000"));
    }
}
