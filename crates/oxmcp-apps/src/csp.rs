//! The content security policy of an app: the origins that it declares, and the policy that a host enforces.

use serde_json::{Value, json};

/// The most origins of one list that a host reads: far more than an app needs.
const MAX_ORIGINS: usize = 64;
/// The most bytes of the origins in a policy. Servers and proxies accept HTTP headers of 8 KiB, and a response has others.
const MAX_POLICY: usize = 6 * 1024;
/// The most characters of an origin: a host name has at most 253.
const MAX_ORIGIN: usize = 300;

/// The origins from which an app may load. Everything else is blocked.
///
/// ```
/// use oxmcp_apps::Csp;
///
/// let mut csp = Csp::default();
/// csp.connect.push("https://api.example.com".to_owned());
/// assert!(csp.policy().contains("connect-src https://api.example.com;"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Csp {
    /// Origins for `fetch`, `XMLHttpRequest` and WebSocket (`connectDomains`).
    pub connect: Vec<String>,
    /// Origins for scripts, styles, images, fonts and media (`resourceDomains`).
    pub resources: Vec<String>,
    /// Origins for nested frames (`frameDomains`).
    pub frames: Vec<String>,
    /// Origins for the base URI of the document (`baseUriDomains`).
    pub base_uris: Vec<String>,
}

/// The lists of a policy, by their names in `_meta.ui.csp`.
pub(crate) const LISTS: [&str; 4] = [
    "connectDomains",
    "resourceDomains",
    "frameDomains",
    "baseUriDomains",
];

impl Csp {
    fn lists(&self) -> [&[String]; 4] {
        [
            &self.connect,
            &self.resources,
            &self.frames,
            &self.base_uris,
        ]
    }

    /// Returns the value of `_meta.ui.csp`, with all four lists.
    pub(crate) fn to_json(&self) -> Value {
        let lists = LISTS.into_iter().zip(self.lists());
        let members = lists.map(|(name, list)| (name.to_owned(), json!(list)));
        Value::Object(members.collect())
    }

    /// Reads the value of `_meta.ui.csp`. Entries that are not origins are left out, because they could add directives to the
    /// policy, and so are origins that do not fit in it.
    pub(crate) fn read(value: &Value) -> Self {
        let lists = LISTS.map(|name| {
            let entries = value.get(name).and_then(Value::as_array);
            let texts = entries.into_iter().flatten();
            texts.filter_map(Value::as_str).collect::<Vec<_>>()
        });
        let [connect, resources, frames, base_uris] =
            enforced(lists).map(|list| list.into_iter().map(str::to_owned).collect());
        Self {
            connect,
            resources,
            frames,
            base_uris,
        }
    }

    /// The number of origins in all lists.
    pub(crate) fn count(&self) -> usize {
        self.lists().map(<[String]>::len).iter().sum()
    }

    /// Returns the policy for the `Content-Security-Policy` header of the page. It allows inline scripts and styles, the
    /// declared origins, and nothing else. Entries that are not origins are left out, and so are origins beyond 6 KiB.
    #[must_use]
    pub fn policy(&self) -> String {
        let lists = self.lists().map(|list| list.iter().map(String::as_str));
        let [connect, resources, frames, base_uris] = enforced(lists).map(|list| list.join(" "));
        let or = |list: String, otherwise: &str| match list.is_empty() {
            true => otherwise.to_owned(),
            false => list,
        };
        let and = |first: &str| match resources.is_empty() {
            true => first.to_owned(),
            false => format!("{first} {resources}"),
        };
        // Forms are not covered by `default-src`, and would send data to any origin.
        [
            ("default-src", "'none'".to_owned()),
            ("script-src", and("'self' 'unsafe-inline'")),
            ("style-src", and("'self' 'unsafe-inline'")),
            ("img-src", and("'self' data:")),
            ("font-src", and("'self' data:")),
            ("media-src", and("'self' data:")),
            ("connect-src", or(connect, "'none'")),
            ("frame-src", or(frames, "'none'")),
            ("object-src", "'none'".to_owned()),
            ("base-uri", or(base_uris, "'self'")),
            ("form-action", "'none'".to_owned()),
        ]
        .map(|(directive, sources)| format!("{directive} {sources}"))
        .join("; ")
    }
}

/// The entries of the [`LISTS`] that a policy contains: those that are origins, as long as they fit.
fn enforced<'a>(lists: [impl IntoIterator<Item = &'a str>; 4]) -> [Vec<&'a str>; 4] {
    let mut space = MAX_POLICY;
    let mut names = LISTS.into_iter();
    lists.map(|list| {
        let name = names.next().unwrap_or_default();
        // Origins of resources are in the directives for scripts, styles, images, fonts and media.
        let copies = if name == "resourceDomains" { 5 } else { 1 };
        let origins = list.into_iter().filter(|it| check_origin(it, name).is_ok());
        let fits = |it: &&str| {
            let left = space.checked_sub((it.len() + 1) * copies);
            space = left.unwrap_or(space);
            left.is_some()
        };
        origins.take(MAX_ORIGINS).filter(fits).collect()
    })
}

/// Checks that a text is an origin for one of the [`LISTS`]: a scheme, a host that may begin with `*.`, and perhaps a port.
///
/// # Errors
/// The problem, and what to write.
pub(crate) fn check_origin(text: &str, list: &str) -> Result<(), String> {
    let (scheme, authority) = text.split_once("://").unwrap_or(("", text));
    let is_socket = matches!(scheme, "ws" | "wss");
    if is_socket && list != "connectDomains" {
        return Err(format!(
            "{text:?} is for `connect` only; use http or https here"
        ));
    }
    let is_origin = text.len() <= MAX_ORIGIN
        && (is_socket || matches!(scheme, "http" | "https"))
        && is_authority(authority);
    if is_origin {
        return Ok(());
    }
    let end = text.char_indices().nth(80).map_or(text.len(), |(at, _)| at);
    let shown = text.get(..end).unwrap_or_default();
    Err(format!(
        "{shown:?} is not an origin; use a scheme and a host without a path, as in \"https://api.example.com\" or \
         \"https://*.example.com\""
    ))
}

/// Whether a text is a host that may begin with `*.`, and perhaps a port.
pub(crate) fn is_authority(authority: &str) -> bool {
    let port_at = authority.rfind(':').filter(|_| !authority.ends_with(']'));
    let (host, port) = port_at.map_or((authority, None), |at| {
        (
            authority.get(..at).unwrap_or_default(),
            authority.get(at + 1..),
        )
    });
    let is_port = port.is_none_or(|port| {
        port.bytes().all(|it| it.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|it| it > 0)
    });
    is_port && (is_ipv6(host) || is_name(host.strip_prefix("*.").unwrap_or(host)))
}

fn is_ipv6(host: &str) -> bool {
    let inner = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    inner.is_some_and(|it| it.parse::<std::net::Ipv6Addr>().is_ok())
}

fn is_name(host: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label
                .bytes()
                .all(|it| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_'))
    };
    host.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_origins_are_accepted() {
        for good in [
            "https://example.com",
            "https://*.example.com",
            "http://localhost:3000",
            "https://[::1]:8443",
            "https://a_b.Example-1.com",
        ] {
            assert_eq!(check_origin(good, "resourceDomains"), Ok(()));
        }
        for bad in [
            "",
            "example.com",
            "https://",
            "https://example.com/",
            "https://example.com/path",
            "https://*",
            "https://a.*.com",
            "https://example.com:*",
            "https://example.com:0",
            "https://example.com:99999",
            "https://example.com; script-src *",
            "https://example.com 'unsafe-eval'",
            "https://user@example.com",
            "https://exa\"mple.com",
            "https://exa\nmple.com",
            "data:",
            "ftp://example.com",
            "https://é.example",
            "https://a..b",
        ] {
            let problem = check_origin(bad, "resourceDomains").unwrap_err();
            assert!(problem.contains("is not an origin; use a scheme"), "{bad}");
        }
        assert_eq!(check_origin("wss://example.com", "connectDomains"), Ok(()));
        assert!(check_origin("wss://example.com", "frameDomains").is_err());
    }

    #[test]
    fn default_policy_allows_nothing_external() {
        assert_eq!(
            Csp::default().policy(),
            "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
             font-src 'self' data:; media-src 'self' data:; connect-src 'none'; frame-src 'none'; object-src 'none'; \
             base-uri 'self'; form-action 'none'"
        );
    }

    // A server adds directives to the policy by an entry of its lists.
    #[test]
    fn policy_has_only_declared_origins() {
        let evil = "https://a.example; script-src *";
        let value = json!({
            "connectDomains": ["wss://c.example", evil, 7],
            "resourceDomains": ["https://r.example", "*"],
            "frameDomains": ["https://f.example"],
            "baseUriDomains": ["https://b.example", "'unsafe-eval'"],
        });
        let mut csp = Csp::read(&value);
        assert_eq!(csp.connect, ["wss://c.example"]);
        csp.connect.push(evil.to_owned());
        assert_eq!(
            csp.policy(),
            "default-src 'none'; script-src 'self' 'unsafe-inline' https://r.example; style-src 'self' 'unsafe-inline' \
             https://r.example; img-src 'self' data: https://r.example; font-src 'self' data: https://r.example; media-src \
             'self' data: https://r.example; connect-src wss://c.example; frame-src https://f.example; object-src 'none'; \
             base-uri https://b.example; form-action 'none'"
        );
    }

    // A server declares more origins than fit in a header.
    #[test]
    fn origins_of_a_list_are_bounded() {
        let many: Vec<_> = (0..1000)
            .map(|it| format!("https://{it}.example"))
            .collect();
        let csp = Csp::read(&json!({"connectDomains": many}));
        assert_eq!(csp.connect.len(), MAX_ORIGINS);
        assert_eq!(Csp::read(&json!("*")), Csp::default());

        // Each list is short enough, and all together are not.
        let long: Vec<_> = (0..64)
            .map(|it| format!("https://{it}.{}.example", "x".repeat(200)))
            .collect();
        let lists = json!({"connectDomains": long, "resourceDomains": long, "frameDomains": long, "baseUriDomains": long});
        let read = Csp::read(&lists);
        let mut csp = Csp::default();
        csp.connect.clone_from(&long);
        csp.resources.clone_from(&long);
        csp.frames.clone_from(&long);
        csp.base_uris = long;
        assert!(csp.policy().len() < 8 * 1024, "{}", csp.policy().len());
        // The view is told exactly what the policy allows.
        assert_eq!(read.policy(), csp.policy());
        assert!(read.connect.iter().all(|it| csp.policy().contains(it)));
        assert!(!read.connect.is_empty() && read.count() < 40);
    }
}
