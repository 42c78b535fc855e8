//! The guard of addresses: a URL that an MCP server or an issuer has named must not lead into the network of this machine.

use std::{
    future::Future,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    vec,
};

use http::Uri;
use hyper_util::client::legacy::connect::dns::Name;
use tokio::{net::lookup_host, sync::OnceCell};
use tower_service::Service;
use url::{Host, Url};

use crate::error::{Error, Result};

/// The addresses that may be connected to: public ones, those of the kind that all of the MCP server's own addresses have, and any
/// of trusted hosts.
#[derive(Clone, Debug)]
pub(crate) struct AddressGuard(Arc<Guarded>);

#[derive(Debug)]
struct Guarded {
    /// The host of the MCP server.
    server: String,
    /// The kind of the server's addresses, as it was when they were first resolved: an answer at another time proves nothing.
    own: OnceCell<Kind>,
    trusted: Vec<String>,
}

/// A kind of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Public,
    Loopback,
    /// Addresses of a local network.
    Private,
    LinkLocal,
    /// Addresses to which no connection is allowed: unspecified, multicast, reserved, and those that contain another address.
    Other,
}

impl AddressGuard {
    pub(crate) fn new(server: &Url, trusted: &[String]) -> Self {
        Self(Arc::new(Guarded {
            server: normal(server.host_str().unwrap_or_default()),
            own: OnceCell::new(),
            trusted: trusted.iter().map(|host| normal(host)).collect(),
        }))
    }

    /// Checks a URL whose host is an address: names are checked when they are resolved.
    ///
    /// # Errors
    /// If the address must not be connected to.
    pub(crate) async fn check(&self, uri: &Uri) -> Result<()> {
        let host = uri.host().unwrap_or_default();
        match literal(host) {
            Some(address) if !self.may_be_asked(host, &[address]).await => {
                Err(Error::unreachable(refused(host, address)))
            }
            _ => Ok(()),
        }
    }

    /// Whether all addresses of a host may be connected to.
    async fn may_be_asked(&self, host: &str, addresses: &[IpAddr]) -> bool {
        let kinds = || addresses.iter().map(|it| Kind::of(*it));
        if kinds().all(|kind| kind == Kind::Public) || self.0.trusted.contains(&normal(host)) {
            return true;
        }
        let own = self.own_kind().await;
        kinds().all(|kind| kind.may_be_asked(own))
    }

    /// The kind of the MCP server's addresses. A name counts as private only if all of its addresses are private, and as loopback
    /// only by its spelling, because the owner of a name decides where it leads.
    async fn own_kind(&self) -> Kind {
        let server = &self.0.server;
        if let Some(address) = literal(server) {
            return Kind::of(address);
        }
        if is_local_name(server) {
            return Kind::Loopback;
        }
        let resolved = self.0.own.get_or_try_init(|| async {
            let addresses = lookup_host((server.as_str(), 0)).await?;
            Ok::<_, io::Error>(Kind::of_name(addresses.map(|it| it.ip())))
        });
        // A name that only a proxy can resolve proves nothing.
        resolved.await.copied().unwrap_or(Kind::Public)
    }

    /// The addresses of a name, if all of them may be connected to.
    async fn resolve(self, name: String) -> io::Result<Vec<SocketAddr>> {
        let found: Vec<_> = lookup_host((name.as_str(), 0)).await?.collect();
        let addresses: Vec<_> = found.iter().map(SocketAddr::ip).collect();
        if self.may_be_asked(&name, &addresses).await {
            return Ok(found);
        }
        let mut closed = addresses
            .into_iter()
            .filter(|it| Kind::of(*it) != Kind::Public);
        let closed = closed.next().map(|address| refused(&name, address));
        let why = closed.unwrap_or_else(|| format!("{name} has no allowed address"));
        Err(io::Error::other(why))
    }
}

/// A host in the form in which hosts are compared.
fn normal(host: &str) -> String {
    host.trim_end_matches('.').to_ascii_lowercase()
}

fn refused(host: &str, address: IpAddr) -> String {
    format!(
        "{host} is at {address}, which is not a public address; if you trust it, \
         allow it with `Login::trust_host` or `TrustedIssuer::keys_at`"
    )
}

fn literal(host: &str) -> Option<IpAddr> {
    // Accepts every notation of an address.
    match Host::parse(host) {
        Ok(Host::Ipv4(address)) => Some(address.into()),
        Ok(Host::Ipv6(address)) => Some(address.into()),
        _ => None,
    }
}

fn is_local_name(host: &str) -> bool {
    host == "localhost" || host.ends_with(".localhost")
}

impl Kind {
    /// Whether addresses of this kind may be connected to, if the MCP server's own addresses are of the kind `own`.
    fn may_be_asked(self, own: Self) -> bool {
        self == Self::Public || (self != Self::Other && self == own)
    }

    /// The kind that a name with these addresses counts as.
    fn of_name(addresses: impl Iterator<Item = IpAddr>) -> Self {
        let mut kinds = addresses.map(Self::of).peekable();
        if kinds.peek().is_some() && kinds.all(|kind| kind == Self::Private) {
            return Self::Private;
        }
        Self::Public
    }

    fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::of_v4(address),
            IpAddr::V6(address) => Self::of_v6(address),
        }
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        let [a, b, c, _] = address.octets();
        match (a, b, c) {
            (127, ..) => Self::Loopback,
            // The last range is that of providers, for carrier-grade NAT.
            (10, ..) | (172, 16..=31, _) | (192, 168, _) | (100, 64..=127, _) => Self::Private,
            (169, 254, _) => Self::LinkLocal,
            (0 | 224.., ..)
            | (192, 0, 0 | 2)
            | (192, 88, 99)
            | (198, 18 | 19, _)
            | (198, 51, 100)
            | (203, 0, 113) => Self::Other,
            _ => Self::Public,
        }
    }

    fn of_v6(address: Ipv6Addr) -> Self {
        if address.is_loopback() {
            return Self::Loopback;
        }
        if let Some(mapped) = address.to_ipv4_mapped() {
            // The system connects to such an address as to the IPv4 address.
            return Self::of_v4(mapped);
        }
        match address.segments() {
            [0xfc00..=0xfdff, ..] => Self::Private,
            [0xfe80..=0xfebf, ..] => Self::LinkLocal,
            // Addresses for documentation, Teredo and 6to4. The other global addresses are public.
            [0x2001, 0 | 0xdb8, ..] | [0x2002, ..] | [0x3fff, 0..=0xfff, ..] => Self::Other,
            [0x2000..=0x3fff, ..] => Self::Public,
            _ => Self::Other,
        }
    }
}

/// A resolver for a connector, which refuses names with addresses that the guard does not allow. The connection goes to the
/// addresses that were checked.
#[derive(Clone, Debug)]
pub(crate) struct GuardedResolver(AddressGuard);

impl GuardedResolver {
    pub(crate) fn new(guard: AddressGuard) -> Self {
        Self(guard)
    }
}

impl Service<Name> for GuardedResolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let resolving = self.0.clone().resolve(name.as_str().to_owned());
        Box::pin(async { resolving.await.map(Vec::into_iter) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn passes(server: &str, trusted: &[&str], host: &str) -> bool {
        let trusted: Vec<_> = trusted.iter().map(|it| (*it).to_owned()).collect();
        let guard = AddressGuard::new(&server.parse().unwrap(), &trusted);
        let url = format!("http://{host}/").parse().unwrap();
        guard.check(&url).await.is_ok()
    }

    // Attack: server-side request forgery.
    #[tokio::test]
    async fn public_server_cannot_name_private_addresses() {
        for host in [
            "127.0.0.1",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "100.64.0.1",
            "169.254.169.254",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "192.0.0.170",
            "198.18.0.1",
            "2130706433",
            "0x7f.1",
            "0177.0.0.1",
            "[::1]",
            "[::]",
            "[::ffff:127.0.0.1]",
            "[::ffff:169.254.169.254]",
            "[::7f00:1]",
            "[fc00::1]",
            "[fd00::1]",
            "[fe80::1]",
            "[ff02::1]",
            "[64:ff9b::7f00:1]",
            "[64:ff9b:1::1]",
            "[2002:7f00:1::]",
            "[2001::1]",
            "[2001:db8::1]",
            "[3fff::1]",
            "[100::1]",
        ] {
            assert!(!passes("https://8.8.8.8/", &[], host).await, "{host}");
        }
        for host in ["8.8.8.8", "[2606:4700::1]", "172.15.0.1", "172.32.0.1"] {
            assert!(passes("https://8.8.8.8/", &[], host).await, "{host}");
        }
    }

    #[test]
    fn address_classes_cover_their_whole_range() {
        let classes = [
            (Kind::Loopback, "127.0.0.0 127.255.255.255 ::1"),
            (Kind::Private, "10.0.0.0 10.255.255.255"),
            (Kind::Private, "172.16.0.0 172.31.255.255"),
            (Kind::Private, "192.168.0.0 192.168.255.255"),
            (Kind::Private, "100.64.0.0 100.127.255.255"),
            (Kind::Private, "fc00:: fdff:ffff::"),
            (Kind::LinkLocal, "169.254.0.0 169.254.255.255"),
            (Kind::LinkLocal, "fe80:: febf:ffff::"),
            (Kind::Other, "0.0.0.0 0.255.255.255 224.0.0.0"),
            (Kind::Other, "192.0.0.0 192.0.2.255 192.88.99.0"),
            (Kind::Other, "198.18.0.0 198.19.255.255"),
            (Kind::Other, "198.51.100.0 203.0.113.255"),
            (Kind::Other, ":: 2001::1 2001:db8:: 2002:: 4000:: fec0::"),
            (Kind::Public, "1.0.0.0 9.255.255.255 11.0.0.0"),
            (Kind::Public, "126.255.255.255 128.0.0.0 223.255.255.255"),
            (Kind::Public, "172.15.255.255 172.32.0.0 100.63.255.255"),
            (Kind::Public, "100.128.0.0 169.253.0.0 169.255.0.0"),
            (Kind::Public, "192.0.1.0 192.0.3.0 192.88.98.0 192.167.0.0"),
            (Kind::Public, "192.169.0.0 198.17.0.0 198.20.0.0"),
            (Kind::Public, "198.51.99.0 198.51.101.0 203.0.112.0"),
            (Kind::Other, "3fff:: 3fff:fff:ffff::"),
            (
                Kind::Public,
                "203.0.114.0 2000:: 2003:: 3ffe:ffff:: 3fff:1000::",
            ),
        ];
        let of_other_kinds: Vec<_> = classes
            .into_iter()
            .flat_map(|(kind, addresses)| addresses.split(' ').map(move |it| (kind, it)))
            .filter(|(kind, address)| Kind::of(address.parse().unwrap()) != *kind)
            .collect();
        assert_eq!(of_other_kinds, []);
    }

    // Attack: server-side request forgery.
    #[tokio::test]
    async fn server_may_name_addresses_of_its_own_class() {
        for (server, trusted, host, expected) in [
            ("http://localhost:3000/", &[][..], "127.0.0.1", true),
            ("http://127.0.0.1/", &[], "[::1]", true),
            ("http://127.0.0.1/", &[], "10.0.0.1", false),
            ("http://10.1.1.1/", &[], "192.168.1.1", true),
            ("http://10.1.1.1/", &[], "127.0.0.1", false),
            ("http://10.1.1.1/", &[], "169.254.169.254", false),
            ("https://8.8.8.8/", &["10.0.0.1"], "10.0.0.1", true),
            ("http://0.0.0.0/", &[], "0.0.0.0", false),
        ] {
            let passes = passes(server, trusted, host).await;
            assert_eq!(passes, expected, "{server} {host}");
        }
    }

    // Attack: server-side request forgery.
    #[tokio::test]
    async fn domain_owner_cannot_reach_the_local_network() {
        // Names that resolve to addresses of several kinds, to loopback, or to others at another time.
        for (own, host, expected) in [
            (Kind::Private, "10.0.0.1", true),
            (Kind::Private, "127.0.0.1", false),
            (Kind::Private, "169.254.169.254", false),
            (Kind::Public, "10.0.0.1", false),
            (Kind::Public, "127.0.0.1", false),
        ] {
            let guard = AddressGuard::new(&"https://mcp.example/".parse().unwrap(), &[]);
            guard.0.own.set(own).unwrap();
            let url = format!("http://{host}/").parse().unwrap();
            assert_eq!(guard.check(&url).await.is_ok(), expected, "{own:?} {host}");
        }
        let kind =
            |addresses: &[&str]| Kind::of_name(addresses.iter().map(|it| it.parse().unwrap()));
        assert_eq!(kind(&["10.0.0.1", "fd00::1"]), Kind::Private);
        for others in ["8.8.8.8", "127.0.0.1", "169.254.169.254", "2606:4700::1"] {
            assert_eq!(kind(&["10.0.0.1", others]), Kind::Public, "{others}");
            assert_eq!(kind(&[others]), Kind::Public, "{others}");
        }
        assert_eq!(kind(&[]), Kind::Public);
    }

    // Attack: server-side request forgery.
    #[tokio::test]
    async fn names_are_checked_after_resolution() {
        let resolve = async |server: &str, trusted: &[String], name: &str| {
            let guard = AddressGuard::new(&server.parse().unwrap(), trusted);
            guard.resolve(name.to_owned()).await
        };
        let error = resolve("https://8.8.8.8/", &[], "localhost")
            .await
            .unwrap_err();
        assert!(
            error.to_string().contains("not a public address"),
            "{error}"
        );
        assert!(resolve("http://127.0.0.1/", &[], "localhost").await.is_ok());
        assert!(resolve("http://[::1]/", &[], "localhost").await.is_ok());
        let trusted = ["LOCALHOST.".to_owned()];
        assert!(
            resolve("https://8.8.8.8/", &trusted, "localhost")
                .await
                .is_ok()
        );
    }
}
