//! Addresses: of a server that stands alone, of nodes of a cluster, or of sentinels.

use std::time::Duration;

use oxmcp::Result;
use redis::{
    ConnectionInfo, IntoConnectionInfo, ProtocolVersion,
    io::tcp::{TcpSettings, socket2::TcpKeepalive},
};

use crate::failure;

/// How long a peer that is gone is not noticed.
const SILENCE: Duration = Duration::from_secs(5);

/// The port of sentinels whose address names none.
const SENTINEL_PORT: u16 = 26379;

/// Where Redis is.
pub(super) struct Address {
    /// Servers, or sentinels. There is one at least.
    pub(super) servers: Vec<ConnectionInfo>,
    /// The name of the primary, where they are sentinels.
    pub(super) primary: Option<String>,
}

impl Address {
    /// Reads `redis://[user:password@]host[:port][,host[:port]…][/database]`, or
    /// `redis-sentinel://[user:password@]host[:port][,…]/name[/database]`.
    pub(super) fn parse(url: &str) -> Result<Self> {
        let Some((scheme, rest)) = url.split_once("://") else {
            return Err(failure::of_url(None));
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(end);
        let (user, hosts) = match authority.rsplit_once('@') {
            Some((user, hosts)) => (format!("{user}@"), hosts),
            None => (String::new(), authority),
        };
        let (scheme, is_sentinel) = match scheme.strip_suffix("-sentinel") {
            Some(scheme) => (scheme, true),
            None => (scheme, false),
        };
        let (primary, tail) = match is_sentinel {
            true => primary(tail)?,
            false => (None, tail.to_owned()),
        };
        let servers = hosts.split(',').map(|host| {
            let host = match is_sentinel && !has_port(host) {
                true => format!("{host}:{SENTINEL_PORT}"),
                false => host.to_owned(),
            };
            let url = format!("{scheme}://{user}{host}{tail}");
            let info = url.as_str().into_connection_info();
            info.map(configured)
                .map_err(|error| failure::of_url(Some(error)))
        });
        Ok(Self {
            servers: servers.collect::<Result<_>>()?,
            primary,
        })
    }

    /// Hosts and ports, which can be shown.
    pub(super) fn shown(&self) -> String {
        let servers = self.servers.iter().map(|it| it.addr().to_string());
        servers.collect::<Vec<_>>().join(",")
    }
}

/// The name of the primary, and what follows it.
fn primary(tail: &str) -> Result<(Option<String>, String)> {
    let path = tail.strip_prefix('/').unwrap_or_default();
    let end = path.find(['/', '?']).unwrap_or(path.len());
    let (name, rest) = path.split_at(end);
    if name.is_empty() {
        return Err(failure::of_url(None));
    }
    Ok((Some(name.to_owned()), rest.to_owned()))
}

fn has_port(host: &str) -> bool {
    host.rsplit(']').next().is_some_and(|it| it.contains(':'))
}

/// A connection that fails when its peer is gone, also where nothing says so, and that is told of its end at once.
fn configured(info: ConnectionInfo) -> ConnectionInfo {
    let redis = info.redis_settings().clone();
    let redis = redis.set_protocol(ProtocolVersion::RESP3);
    info.set_tcp_settings(tcp()).set_redis_settings(redis)
}

/// The settings of all connections.
pub(super) fn tcp() -> TcpSettings {
    let keepalive = TcpKeepalive::new()
        .with_time(SILENCE)
        .with_interval(SILENCE);
    let tcp = TcpSettings::default()
        .set_nodelay(true)
        .set_keepalive(keepalive);
    #[cfg(target_os = "linux")]
    let tcp = tcp.set_user_timeout(SILENCE);
    tcp
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_every_form_are_read() {
        for (url, shown, primary) in [
            ("redis://localhost", "localhost:6379", None),
            ("redis://:a@b:1,c/2", "b:1,c:6379", None),
            ("redis://[::1]:7,[::2]", "[::1]:7,[::2]:6379", None),
            ("redis+unix:///tmp/redis.sock", "/tmp/redis.sock", None),
            ("redis-sentinel://a,b:7/main", "a:26379,b:7", Some("main")),
            (
                "redis-sentinel://u:p@[::1]/main/3",
                "[::1]:26379",
                Some("main"),
            ),
        ] {
            let address = Address::parse(url).unwrap();
            assert_eq!(address.primary.as_deref(), primary, "{url}");
            assert_eq!(
                address
                    .shown()
                    .replace("::1:", "[::1]:")
                    .replace("::2:", "[::2]:")
                    .replace("[[", "[")
                    .replace("]]", "]"),
                shown
            );
        }
        let sealed = Address::parse("redis-sentinel://u:p@a/main/3").unwrap();
        let settings = sealed.servers[0].redis_settings();
        assert_eq!(
            (settings.username(), settings.password(), settings.db()),
            (Some("u"), Some("p"), 3)
        );
        for url in [
            "localhost",
            "redis-sentinel://a",
            "redis-sentinel://a/",
            "http://a",
            "redis://a,b:x",
        ] {
            assert!(Address::parse(url).is_err(), "{url}");
        }
    }
}
