//! The hosts and origins that may use an endpoint. A web page can send requests to every address that its user's machine can reach,
//! even through its own host name that resolves to this machine (DNS rebinding). `Host` and `Origin` reveal such requests.

use std::{
    borrow::Cow,
    net::{IpAddr, Ipv6Addr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use http::{header, request::Parts};
use memchr::memchr;

use super::{
    check::{Checked, Failure},
    head::only,
};
use crate::error::{Error, Result};

/// The hosts and origins that may use an endpoint. By default only loopback ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policy {
    hosts: Allowed<Authority<'static>>,
    origins: Allowed<PageOrigin>,
    /// The error of the first entry that cannot be parsed.
    problem: Option<String>,
    /// Whether a rejected host was logged. One warning is enough to see which name is missing, and any client can cause more.
    has_warned: Arc<AtomicBool>,
}

impl Policy {
    /// Replaces the allowed hosts: each `name` or `name:port`, or `*` for any.
    pub(crate) fn allow_hosts(&mut self, hosts: impl IntoIterator<Item = impl Into<String>>) {
        let hosts = list(hosts, |host| {
            Authority::parse(host).map(Authority::into_owned)
        });
        self.hosts = self.allowed(
            hosts,
            "host: expected a form such as `example.com`, `example.com:8080`, `[::1]` or `*`",
        );
    }

    /// Replaces the allowed origins: each `scheme://host` or `scheme://host:port`, or `*` for any. Same-origin requests are always
    /// allowed, unless any host is.
    pub(crate) fn allow_origins(&mut self, origins: impl IntoIterator<Item = impl Into<String>>) {
        let origins = list(origins, PageOrigin::parse);
        self.origins = self.allowed(
            origins,
            "origin: expected a form such as `https://example.com`, `http://localhost:3000` or `*`",
        );
    }

    /// Whether this origin was listed by name, so that its pages may read responses. Origins that are allowed for other reasons
    /// (`*`, loopback, same origin) are not listed.
    pub(crate) fn lists_origin(&self, origin: &str) -> bool {
        matches!(&self.origins, Allowed::Listed(listed)
            if PageOrigin::parse(origin).is_some_and(|origin| listed.contains(&origin)))
    }

    /// Checks the entries of both lists.
    ///
    /// # Errors
    /// If an entry cannot be parsed. Then no request is accepted, because the intended entries are unknown.
    pub(crate) fn check(&self) -> Result<()> {
        match &self.problem {
            Some(problem) => Err(Error::misuse(problem.clone())),
            None => Ok(()),
        }
    }

    /// Returns the parsed list. If an entry could not be parsed, records the problem and allows nothing.
    fn allowed<T>(&mut self, listed: Result<Allowed<T>, String>, wanted: &str) -> Allowed<T> {
        listed.unwrap_or_else(|entry| {
            let problem = format!("cannot parse {entry:?} as an allowed {wanted}");
            self.problem.get_or_insert(problem);
            Allowed::Listed(Vec::new())
        })
    }
}

/// The allowed entries, or the first that cannot be parsed.
fn list<T>(
    entries: impl IntoIterator<Item = impl Into<String>>,
    parse: fn(&str) -> Option<T>,
) -> Result<Allowed<T>, String> {
    let mut listed = Vec::new();
    for entry in entries {
        let entry = entry.into();
        if entry == "*" {
            return Ok(Allowed::Any);
        }
        listed.push(parse(&entry).ok_or(entry)?);
    }
    Ok(Allowed::Listed(listed))
}

/// [`Check::Host`](super::check::Check::Host).
pub(crate) fn host(policy: &Policy, parts: &Parts) -> Checked {
    let host = named_host(parts)?;
    if policy.hosts.has(&parsed(host)?) {
        return Ok(());
    }
    let host = host.escape_debug();
    if !policy.has_warned.swap(true, Ordering::Relaxed) {
        tracing::warn!(%host, "rejected a request because its `Host` is not in `allowed_hosts`");
    }
    Err(
        format!("host `{host}` is not allowed: the server's `allowed_hosts` must include it")
            .into(),
    )
}

/// [`Check::Origin`](super::check::Check::Origin). Only browsers send the header.
pub(crate) fn origin(policy: &Policy, parts: &Parts) -> Checked {
    let Some(origin) = only(&parts.headers, &header::ORIGIN)? else {
        return Ok(());
    };
    if policy.origins == Allowed::Any {
        return Ok(());
    }
    let is_allowed = PageOrigin::parse(origin).is_some_and(|origin| {
        let is_own = policy.hosts != Allowed::Any;
        let host = || named_host(parts).and_then(parsed);
        let is_own = is_own && host().is_ok_and(|host| origin.is_of(&host));
        is_own || policy.origins.has(&origin)
    });
    if is_allowed {
        return Ok(());
    }
    Err("this origin is not allowed: the server's `allowed_origins` must include it".into())
}

/// The host that the request names: in `Host`, or over HTTP/2 in `:authority`.
fn named_host(parts: &Parts) -> Result<&str, Failure> {
    let header = only(&parts.headers, &header::HOST)?;
    let target = parts.uri.authority().map(http::uri::Authority::as_str);
    match (header, target) {
        (Some(header), Some(target)) if !header.eq_ignore_ascii_case(target) => {
            Err("`Host` and the request URL name different hosts".into())
        }
        (Some(host), _) | (None, Some(host)) => Ok(host),
        (None, None) => Err("missing header `Host`".into()),
    }
}

fn parsed(host: &str) -> Result<Authority<'_>, Failure> {
    Authority::parse(host)
        .ok_or_else(|| "invalid header `Host`: expected `host` or `host:port`".into())
}

/// A host with or without a port, as in `Host`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Authority<'a> {
    /// In lower case, without the brackets of an IPv6 address.
    host: Cow<'a, str>,
    port: Option<u16>,
}

impl<'a> Authority<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (host, rest) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, rest) = rest.split_once(']')?;
                let address: Ipv6Addr = address.parse().ok()?;
                (Cow::Owned(address.to_string()), rest)
            }
            None => {
                let end = memchr(b':', text.as_bytes()).unwrap_or(text.len());
                let (host, rest) = text.split_at(end);
                (in_lower_case(host), rest)
            }
        };
        let port = match rest.strip_prefix(':') {
            Some(port) => Some(Self::port(port)?),
            None if rest.is_empty() => None,
            None => return None,
        };
        let is_plain =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b':');
        let is_host = !host.is_empty() && host.bytes().all(is_plain);
        is_host.then_some(Self { host, port })
    }

    fn into_owned(self) -> Authority<'static> {
        Authority {
            host: Cow::Owned(self.host.into_owned()),
            port: self.port,
        }
    }

    fn port(text: &str) -> Option<u16> {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| is_number)
    }

    /// Whether the host is this machine's loopback interface.
    fn is_loopback(&self) -> bool {
        let address = || self.host.parse().map(|it: IpAddr| it.to_canonical());
        matches!(&*self.host, "localhost" | "127.0.0.1")
            || address().is_ok_and(|it| it.is_loopback())
    }

    /// Without the port if it is the default of the scheme.
    fn in_scheme(mut self, scheme: &str) -> Self {
        let default = match scheme {
            "http" => Some(80),
            "https" => Some(443),
            _ => None,
        };
        self.port = self.port.filter(|port| Some(*port) != default);
        self
    }
}

fn in_lower_case(text: &str) -> Cow<'_, str> {
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Cow::Owned(text.to_ascii_lowercase());
    }
    Cow::Borrowed(text)
}

/// The origin of a page, as in `Origin`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PageOrigin {
    scheme: Box<str>,
    authority: Authority<'static>,
}

impl PageOrigin {
    fn parse(text: &str) -> Option<Self> {
        let (scheme, authority) = text.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        let is_scheme = !scheme.is_empty() && scheme.bytes().all(is_plain);
        let authority = Authority::parse(authority)?.in_scheme(&scheme);
        is_scheme.then_some(Self {
            scheme: scheme.into(),
            authority: authority.into_owned(),
        })
    }

    fn is_web(&self) -> bool {
        matches!(&*self.scheme, "http" | "https")
    }

    /// Whether the page comes from the host to which it makes the request.
    fn is_of(&self, host: &Authority<'_>) -> bool {
        self.is_web() && self.authority == host.clone().in_scheme(&self.scheme)
    }
}

/// A set of hosts or origins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Allowed<T> {
    /// Only this machine, on any port.
    #[default]
    Loopback,
    Any,
    Listed(Vec<T>),
}

impl Allowed<Authority<'static>> {
    /// A host without a port is allowed on every port.
    fn has(&self, host: &Authority<'_>) -> bool {
        match self {
            Self::Loopback => host.is_loopback(),
            Self::Any => true,
            Self::Listed(hosts) => hosts
                .iter()
                .any(|it| it.host == host.host && (it.port.is_none() || it.port == host.port)),
        }
    }
}

impl Allowed<PageOrigin> {
    fn has(&self, origin: &PageOrigin) -> bool {
        match self {
            Self::Loopback => origin.is_web() && origin.authority.is_loopback(),
            Self::Any => true,
            Self::Listed(origins) => origins.contains(origin),
        }
    }
}
