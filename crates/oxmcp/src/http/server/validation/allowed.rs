//! Hosts and origins, and which of them are allowed.

use std::{
    borrow::Cow,
    net::{IpAddr, Ipv6Addr},
};

/// A host with or without a port, as `Host` has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Authority<'a> {
    /// In lower case, without the brackets of an IPv6 address.
    host: Cow<'a, str>,
    port: Option<u16>,
}

impl<'a> Authority<'a> {
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (host, rest) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, rest) = rest.split_once(']')?;
                let address: Ipv6Addr = address.parse().ok()?;
                (Cow::Owned(address.to_string()), rest)
            }
            None => {
                let end = text.find(':').unwrap_or(text.len());
                let (host, rest) = text.split_at(end);
                (in_lower_case(host), rest)
            }
        };
        let port = match rest.strip_prefix(':') {
            Some(port) => Some(Self::port(port)?),
            None if rest.is_empty() => None,
            None => return None,
        };
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
        let is_host = !host.is_empty() && host.bytes().all(is_plain);
        is_host.then_some(Self { host, port })
    }

    pub(super) fn into_owned(self) -> Authority<'static> {
        Authority {
            host: Cow::Owned(self.host.into_owned()),
            port: self.port,
        }
    }

    fn port(text: &str) -> Option<u16> {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| is_number)
    }

    /// Whether a text is what nearly all programs on this machine call it: then it [is a loopback](Self::is_loopback) one.
    pub(super) fn is_usual(text: &str) -> bool {
        let named = text.strip_prefix("127.0.0.1");
        let rest = named.or_else(|| text.strip_prefix("localhost"));
        rest.is_some_and(|rest| {
            let port = rest.strip_prefix(':');
            rest.is_empty() || port.is_some_and(|port| Self::port(port).is_some())
        })
    }

    /// Whether it is this machine, to itself.
    fn is_loopback(&self) -> bool {
        let address = || self.host.parse().map(|it: IpAddr| it.to_canonical());
        self.host == "localhost" || address().is_ok_and(|it| it.is_loopback())
    }

    /// Without the port, where it is the one that the scheme has anyway.
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

/// Where a page comes from, as `Origin` has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    scheme: Box<str>,
    authority: Authority<'static>,
}

impl Origin {
    pub(super) fn parse(text: &str) -> Option<Self> {
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

    /// Whether the page comes from the host that it talks to.
    pub(super) fn is_of(&self, host: &Authority<'_>) -> bool {
        self.is_web() && self.authority == host.clone().in_scheme(&self.scheme)
    }
}

/// Which hosts or origins may be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Allowed<T> {
    /// This machine alone, on any port.
    #[default]
    Loopback,
    Any,
    Listed(Vec<T>),
}

impl Allowed<Authority<'static>> {
    /// A host without a port is allowed on every port.
    pub(super) fn has(&self, host: &Authority<'_>) -> bool {
        match self {
            Self::Loopback => host.is_loopback(),
            Self::Any => true,
            Self::Listed(hosts) => hosts
                .iter()
                .any(|it| it.host == host.host && (it.port.is_none() || it.port == host.port)),
        }
    }
}

impl Allowed<Origin> {
    pub(super) fn has(&self, origin: &Origin) -> bool {
        match self {
            Self::Loopback => origin.is_web() && origin.authority.is_loopback(),
            Self::Any => true,
            Self::Listed(origins) => origins.contains(origin),
        }
    }
}
