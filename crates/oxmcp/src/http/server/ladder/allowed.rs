//! Hosts and origins, and which of them are allowed.

use std::net::{Ipv4Addr, Ipv6Addr};

/// A host with or without a port, as `Host` has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Authority {
    /// In lower case, without the brackets of an IPv6 address.
    host: Box<str>,
    port: Option<u16>,
}

impl Authority {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (host, rest) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, rest) = rest.split_once(']')?;
                let address: Ipv6Addr = address.parse().ok()?;
                (address.to_string(), rest)
            }
            None => {
                let end = text.find(':').unwrap_or(text.len());
                let (host, rest) = text.split_at(end);
                (host.to_ascii_lowercase(), rest)
            }
        };
        let port = match rest.strip_prefix(':') {
            Some(port) => Some(Self::port(port)?),
            None if rest.is_empty() => None,
            None => return None,
        };
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
        (!host.is_empty() && host.bytes().all(is_plain)).then_some(Self {
            host: host.into(),
            port,
        })
    }

    fn port(text: &str) -> Option<u16> {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| is_number)
    }

    /// Whether it is this machine, to itself.
    fn is_loopback(&self) -> bool {
        let v4 = self.host.parse::<Ipv4Addr>();
        let v6 = self.host.parse::<Ipv6Addr>();
        &*self.host == "localhost"
            || v4.is_ok_and(|address| address.is_loopback())
            || v6.is_ok_and(|address| address.to_canonical().is_loopback())
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

/// Where a page comes from, as `Origin` has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    scheme: Box<str>,
    authority: Authority,
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
            authority,
        })
    }

    fn is_web(&self) -> bool {
        matches!(&*self.scheme, "http" | "https")
    }

    /// Whether the page comes from the host that it talks to.
    pub(super) fn is_of(&self, host: &Authority) -> bool {
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

impl Allowed<Authority> {
    /// A host without a port is allowed on every port.
    pub(super) fn has(&self, host: &Authority) -> bool {
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
