//! Definitions that violate the rules of the protocol: the server does not start.

use oxmcp::{
    Client, Extension, Prompt, Resource, ResourceTemplate, Server, in_memory, protocol::Icon,
};

use crate::support::idle;

/// The error of a server that does not start, if there is one.
async fn mistake(server: Server) -> Option<String> {
    let (_near, far) = in_memory();
    let error = server.connect(far).await.err();
    error.map(|error| error.message().to_owned())
}

#[tokio::test]
async fn icons_require_displayable_schemes() {
    let servers = |src: &str| {
        let icon = || Icon::new(src);
        let read = || async { "text" };
        let server = || Server::new("s", "1");
        [
            server().icon(icon()),
            server().tool(idle("t").icon(icon())),
            server().prompt(Prompt::new("p", "", || async { "text" }).icon(icon())),
            server().resource(Resource::new("a:b", "r", read).icon(icon())),
            server().resource_template(
                ResourceTemplate::new(
                    "a:{b}",
                    "r",
                    |_: std::collections::HashMap<String, String>| async { "text" },
                )
                .icon(icon()),
            ),
        ]
    };
    for src in [
        "https://example.com/a.png",
        "HTTP://example.com/a.png",
        "data:image/png;base64,AAAA",
        "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'/>",
    ] {
        for server in servers(src) {
            assert_eq!(mistake(server).await, None, "{src}");
        }
    }
    for src in [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "ftp://a/b",
        "https://a/\"><script>",
        "https://a/ b.png",
        "a.png",
        "",
    ] {
        for server in servers(src) {
            let told = mistake(server).await.unwrap();
            assert!(
                told.contains("expected an `https:`, `http:` or `data:` URI"),
                "{told}"
            );
        }
        let (near, _far) = in_memory();
        let client = Client::new("c", "1").icon(Icon::new(src));
        let error = client.connect(near).await.unwrap_err();
        assert!(
            error
                .message()
                .contains("expected an `https:`, `http:` or `data:` URI"),
            "{error}"
        );
    }
}

/// Servers that offer one feature each, with a key in its metadata, and the name of the feature in errors.
fn with_key(key: &str, server: impl Fn() -> Server) -> [(Server, &'static str); 4] {
    let read = || async { "text" };
    let prompt = Prompt::new("p", "", || async { "text" });
    let template = ResourceTemplate::new(
        "a:{b}",
        "r",
        |_: std::collections::HashMap<String, String>| async { "text" },
    );
    [
        (server().tool(idle("t").meta(key, 1)), "tool \"t\""),
        (server().prompt(prompt.meta(key, 1)), "prompt \"p\""),
        (
            server().resource(Resource::new("a:b", "r", read).meta(key, 1)),
            "resource \"a:b\"",
        ),
        (
            server().resource_template(template.meta(key, 1)),
            "resource template \"a:{b}\"",
        ),
    ]
}

#[tokio::test]
async fn metadata_of_definitions_follows_the_rules() {
    for key in ["zone", "com.example/zone", "ui", "ui/resourceUri"] {
        for (server, _) in with_key(key, || Server::new("s", "1")) {
            assert_eq!(mistake(server).await, None, "{key}");
        }
    }
    for key in ["io.modelcontextprotocol/zone", "a b", "/", "-a"] {
        for (server, kind) in with_key(key, || Server::new("s", "1")) {
            let told = mistake(server).await;
            let told = told.unwrap_or_else(|| panic!("{key} is taken"));
            assert!(told.contains(kind) && told.contains("_meta"), "{told}");
        }
    }
}

#[tokio::test]
async fn definitions_may_use_keys_of_server_extensions() {
    const KEY: &str = "io.modelcontextprotocol/zone";
    let zones = || Extension::new("io.modelcontextprotocol/zones").meta_key(KEY);
    for (server, kind) in with_key(KEY, || Server::new("s", "1").extension(zones())) {
        assert_eq!(mistake(server).await, None, "{kind}");
    }
    // The feature may be added before the extension.
    for (server, kind) in with_key(KEY, || Server::new("s", "1")) {
        assert_eq!(mistake(server.extension(zones())).await, None, "{kind}");
    }
    let zoned = || idle("t").meta(KEY, 1);
    let server = Server::new("s", "1").extension(zones());
    server.add_tools([zoned()]).unwrap();
    let shared = server.clone();
    shared.add_tools([zoned()]).unwrap();
    assert!(server.check().is_ok());
    // A server that is in use rejects invalid definitions.
    let plain = Server::new("s", "1");
    let shared = plain.clone();
    let error = shared.add_tools([idle("u"), zoned()]).unwrap_err();
    assert!(error.message().contains("tool \"t\""), "{error}");
    assert!(format!("{plain:?}").contains("tools: 0"));
}
