//! Conversion of Redis errors to SDK errors, whose messages say what to do and show none of the data.

use std::{io, time::Duration};

use oxmcp::Error;
use redis::{ErrorKind, RedisError, ServerErrorKind};

/// An I/O error with this message, after which it is unknown whether the operation was done.
fn io(kind: io::ErrorKind, message: impl Into<String>) -> Error {
    io::Error::new(kind, message.into()).into()
}

/// The error of an unusable server or setting.
pub(crate) fn unusable(message: impl Into<String>) -> Error {
    io(io::ErrorKind::Unsupported, message)
}

/// The error of an operation that took too long.
pub(crate) fn unanswered(patience: Duration) -> Error {
    io(
        io::ErrorKind::TimedOut,
        format!(
            "no response from Redis within {patience:?}: it hangs, is overloaded, or is unreachable"
        ),
    )
}

/// The error of a URL that cannot be parsed. The message does not repeat the URL, which may contain a password.
pub(crate) fn of_url(error: Option<RedisError>) -> Error {
    let tls = match cfg!(feature = "tls") {
        true => "for TLS use `rediss`",
        false => "`rediss://` needs the feature `tls`",
    };
    let failed = io(
        io::ErrorKind::InvalidInput,
        format!(
            "invalid Redis address: expected `redis://[user:password@]host[:port][/database]`, with several hosts separated by commas \
         for a cluster, `redis-sentinel://[user:password@]host[:port][,host…]/name[/database][?sentinel_password=…]` or \
         `redis+unix:///path`; {tls}"
        ),
    );
    match error {
        Some(error) => failed.with_source(error),
        None => failed,
    }
}

/// The error of an operation, or of the connection that it needed.
pub(crate) fn of_redis(error: RedisError, address: &str) -> Error {
    let (kind, message) = match (error.kind(), error.code()) {
        _ if is_login(&error) => (
            io::ErrorKind::PermissionDenied,
            format!(
                "Redis at {address} rejected the user or password; put them into the address, `redis://user:password@host`"
            ),
        ),
        (_, Some("NOPERM")) => (
            io::ErrorKind::PermissionDenied,
            "Redis user lacks permissions; grant `+@all -@admin +info`, `~*` or the prefix of the keys, and `&*` for channels".to_owned(),
        ),
        (_, Some("OOM")) => (
            io::ErrorKind::StorageFull,
            "Redis is out of memory; raise `maxmemory`, and set `maxmemory-policy` to `noeviction` or `volatile-ttl`".to_owned(),
        ),
        (_, Some("MISCONF")) => (
            io::ErrorKind::StorageFull,
            "Redis cannot write to its disk and refuses changes; see its log".to_owned(),
        ),
        (ErrorKind::Server(ServerErrorKind::ReadOnly), _) => (
            io::ErrorKind::ReadOnlyFilesystem,
            format!("Redis at {address} is a read-only replica; use the address of the primary"),
        ),
        (ErrorKind::Server(ServerErrorKind::Moved | ServerErrorKind::Ask | ServerErrorKind::TryAgain), _) => (
            io::ErrorKind::ResourceBusy,
            format!("Redis cluster at {address} is moving keys between nodes; try again later"),
        ),
        (ErrorKind::Server(ServerErrorKind::BusyLoading | ServerErrorKind::MasterDown | ServerErrorKind::ClusterDown), _) => (
            io::ErrorKind::ResourceBusy,
            "Redis is not ready: it is loading its data or waiting for its primary; try again later".to_owned(),
        ),
        (ErrorKind::ClusterConnectionNotFound, _) => (
            io::ErrorKind::ConnectionRefused,
            format!("could not reach the node of the Redis cluster at {address} that has the key"),
        ),
        (ErrorKind::RESP3NotSupported, _) => return too_old(address, "6.0 or older").with_source(error),
        _ if error.is_timeout() => {
            return io(
                io::ErrorKind::TimedOut,
                format!("no response from Redis at {address}: it hangs, is overloaded, or is unreachable"),
            )
            .with_source(error);
        }
        _ if error.is_connection_refusal() => (
            io::ErrorKind::ConnectionRefused,
            format!("could not connect to Redis at {address}: connection refused; start Redis, or correct the address"),
        ),
        _ if error.is_io_error() || error.is_connection_dropped() => (
            io::ErrorKind::ConnectionReset,
            format!("lost the connection to Redis at {address}: {error}"),
        ),
        _ => (
            io::ErrorKind::Other,
            format!("Redis at {address} refused an operation"),
        ),
    };
    io(kind, message).with_source(error)
}

/// Whether the user or password is wrong or missing.
fn is_login(error: &RedisError) -> bool {
    error.kind() == ErrorKind::AuthenticationFailed
        || matches!(error.code(), Some("WRONGPASS" | "NOAUTH"))
}

/// The error of a node of a cluster.
#[cfg(not(feature = "cluster"))]
pub(crate) fn cluster(address: &str) -> Error {
    unusable(format!(
        "Redis at {address} is a cluster node; enable the feature `cluster` of `oxmcp-redis`, or use a standalone server"
    ))
}

/// The error of an address with several hosts that belong to no cluster.
pub(crate) fn no_cluster(address: &str) -> Error {
    unusable(format!(
        "Redis at {address} is not a cluster, but the address has several hosts; use the host of the primary, or \
         `redis-sentinel://host,host/name`"
    ))
}

/// The error of an address of sentinels, if the feature is disabled.
#[cfg(not(feature = "sentinel"))]
pub(crate) fn no_sentinels() -> Error {
    unusable("`redis-sentinel://` needs the feature `sentinel` of `oxmcp-redis`")
}

/// The error of sentinels, or of the primary that they name.
#[cfg(feature = "sentinel")]
pub(crate) fn of_sentinels(error: RedisError, primary: &str, address: &str) -> Error {
    if error.kind() == ErrorKind::MasterNameNotFoundBySentinel {
        return io(
            io::ErrorKind::NotFound,
            format!(
                "sentinels at {address} know no working primary {primary:?}; use the name in their `sentinel monitor`"
            ),
        )
        .with_source(error);
    }
    if is_login(&error) {
        return io(io::ErrorKind::PermissionDenied, format!(
            "sentinels at {address} or the primary {primary:?} rejected the user or password; put those of the primary into \
             `redis-sentinel://user:password@host/name`, and those of the sentinels into `?sentinel_username=…&sentinel_password=…`"
        ))
        .with_source(error);
    }
    of_redis(error, address)
}

/// The error of a server that is too old.
pub(crate) fn too_old(address: &str, version: &str) -> Error {
    unusable(format!(
        "Redis at {address} is too old: version {version}; use Redis 7.0, Valkey 7.2, or newer"
    ))
}
