//! Addresses of a standalone server, of nodes of a cluster, or of sentinels.

use std::time::Duration;

use oxmcp::Result;
use redis::{
    ConnectionInfo, IntoConnectionInfo, ProtocolVersion, RedisConnectionInfo,
    io::tcp::{TcpSettings, socket2::TcpKeepalive},
};

use crate::failure;

/// The idle time before keep-alive probes, their interval, and (on Linux) the time after which an unresponsive peer counts as gone.
const SILENCE: Duration = Duration::from_secs(5);

/// The port of sentinels if the address names none.
const SENTINEL_PORT: u16 = 26379;

/// The address of Redis.
pub(crate) struct Address {
    /// The servers or sentinels, at least one.
    pub(crate) servers: Vec<ConnectionInfo>,
    /// The name of the primary, if the servers are sentinels.
    pub(crate) primary: Option<String>,
    /// The user and password of the sentinels.
    pub(crate) sentinel: RedisConnectionInfo,
}

impl Address {
    /// Parses `redis://[user:password@]host[:port][,host[:port]…][/database]`, or
    /// `redis-sentinel://[user:password@]host[:port][,…]/name[/database][?sentinel_username=…&sentinel_password=…]`.
    pub(crate) fn parse(url: &str) -> Result<Self> {
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
        let (primary, sentinel, tail) = match is_sentinel {
            true => sentinel(tail)?,
            false => (None, RedisConnectionInfo::default(), tail.to_owned()),
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
            sentinel,
        })
    }

    /// The hosts and ports, which messages may show.
    pub(crate) fn shown(&self) -> String {
        let servers = self.servers.iter().map(|it| it.addr().to_string());
        servers.collect::<Vec<_>>().join(",")
    }
}

/// Parses the part after the hosts: the name of the primary, the user and password of the sentinels, and the rest.
fn sentinel(tail: &str) -> Result<(Option<String>, RedisConnectionInfo, String)> {
    let (path, query) = tail.split_once('?').unwrap_or((tail, ""));
    let path = path.strip_prefix('/').unwrap_or_default();
    let end = path.find('/').unwrap_or(path.len());
    let (name, database) = path.split_at(end);
    if name.is_empty() {
        return Err(failure::of_url(None));
    }
    let (mut user, mut password) = (String::new(), None);
    let mut rest = database.to_owned();
    for pair in query.split('&').filter(|it| !it.is_empty()) {
        match pair.split_once('=') {
            Some(("sentinel_username", it)) => user = in_authority(it),
            Some(("sentinel_password", it)) => password = Some(in_authority(it)),
            _ => {
                rest.push(if rest.contains('?') { '&' } else { '?' });
                rest.push_str(pair);
            }
        }
    }
    let Some(password) = password else {
        return Ok((Some(name.to_owned()), RedisConnectionInfo::default(), rest));
    };
    let url = format!("redis://{user}:{password}@localhost");
    let info = url.as_str().into_connection_info();
    let info = info.map_err(|error| failure::of_url(Some(error)))?;
    Ok((Some(name.to_owned()), info.redis_settings().clone(), rest))
}

/// Text of a query, escaped for the place before the host of a URL, where some more characters must be escaped.
fn in_authority(text: &str) -> String {
    let escaped = [(':', "%3A"), ('/', "%2F"), ('?', "%3F"), ('@', "%40")];
    let mut text = text.to_owned();
    for (letter, code) in escaped {
        text = text.replace(letter, code);
    }
    text
}

fn has_port(host: &str) -> bool {
    host.rsplit(']').next().is_some_and(|it| it.contains(':'))
}

/// Configures a connection so that it detects a lost peer, even a silent one, and is notified of its end at once.
fn configured(info: ConnectionInfo) -> ConnectionInfo {
    let redis = info.redis_settings().clone();
    let redis = redis.set_protocol(ProtocolVersion::RESP3);
    info.set_tcp_settings(tcp()).set_redis_settings(redis)
}

/// The TCP settings of all connections.
pub(crate) fn tcp() -> TcpSettings {
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

    #[test]
    fn sentinels_have_separate_credentials_in_the_address() {
        let own = "sentinel_username=s%20s&sentinel_password=x:/?@%26";
        for (query, login) in [
            ("", (None, None)),
            ("?protocol=resp3", (None, None)),
            (&format!("?{own}"), (Some("s s"), Some("x:/?@&"))),
            ("?sentinel_password=x&protocol=resp3", (None, Some("x"))),
        ] {
            let address = Address::parse(&format!("redis-sentinel://u:p@a/main/3{query}"));
            let address = address.unwrap();
            let sentinel = (address.sentinel.username(), address.sentinel.password());
            assert_eq!(sentinel, login, "{query}");
            let settings = address.servers[0].redis_settings();
            assert_eq!(
                (settings.username(), settings.password(), settings.db()),
                (Some("u"), Some("p"), 3)
            );
        }
    }
}
