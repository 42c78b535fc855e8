//! Conversion of errors of Redis to errors of the SDK. The messages say what to do, and show nothing of the data.

use std::{io, time::Duration};

use oxmcp::Error;
use redis::{ErrorKind, RedisError, ServerErrorKind};

/// An I/O error with this message, after which it is unknown whether the operation was done.
fn io(kind: io::ErrorKind, message: impl Into<String>) -> Error {
    io::Error::new(kind, message.into()).into()
}

/// The error of a server or a setting that cannot be used.
pub(crate) fn unusable(message: impl Into<String>) -> Error {
    io(io::ErrorKind::Unsupported, message)
}

/// The error of an operation that took too long.
pub(crate) fn unanswered(patience: Duration) -> Error {
    let message = format!(
        "Redis has not answered within {patience:?}: it hangs, is overloaded, or cannot be reached"
    );
    io(io::ErrorKind::TimedOut, message)
}

/// The error of a URL that cannot be parsed. The message does not repeat the URL, which may contain a password.
pub(crate) fn of_url(error: Option<RedisError>) -> Error {
    let tls = match cfg!(feature = "tls") {
        true => "with TLS it begins with rediss",
        false => "rediss://… needs the feature `tls`",
    };
    let message = format!(
        "this is no address of Redis: it is redis://[user:password@]host[:port][/database], with several hosts and commas between \
         them for a cluster, redis-sentinel://[user:password@]host[:port][,host…]/name[/database][?sentinel_password=…], or redis+unix:///path; {tls}"
    );
    let failed = io(io::ErrorKind::InvalidInput, message);
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
                "Redis at {address} wants another user or password: put them into its address, redis://user:password@host"
            ),
        ),
        (_, Some("NOPERM")) => (
            io::ErrorKind::PermissionDenied,
            "this user of Redis may not do what the store needs: grant it +@all -@admin +info, ~* or the prefix of the keys, and &* for channels".to_owned(),
        ),
        (_, Some("OOM")) => (
            io::ErrorKind::StorageFull,
            "Redis has no memory left: raise `maxmemory`, and keep `maxmemory-policy noeviction` or `volatile-ttl`".to_owned(),
        ),
        (_, Some("MISCONF")) => (
            io::ErrorKind::StorageFull,
            "Redis cannot write to its disk, and refuses changes until it can: see its log".to_owned(),
        ),
        (ErrorKind::Server(ServerErrorKind::ReadOnly), _) => (
            io::ErrorKind::ReadOnlyFilesystem,
            format!("Redis at {address} is a replica, which takes no changes: give the address of the primary"),
        ),
        (ErrorKind::Server(ServerErrorKind::Moved | ServerErrorKind::Ask | ServerErrorKind::TryAgain), _) => (
            io::ErrorKind::ResourceBusy,
            moving(address),
        ),
        (ErrorKind::Server(ServerErrorKind::BusyLoading | ServerErrorKind::MasterDown | ServerErrorKind::ClusterDown), _) => (
            io::ErrorKind::ResourceBusy,
            "Redis is not ready yet: it loads its data, or waits for its primary; try again".to_owned(),
        ),
        (ErrorKind::ClusterConnectionNotFound, _) => (
            io::ErrorKind::ConnectionRefused,
            format!("no node of the cluster at {address} can be reached that has the key"),
        ),
        (ErrorKind::RESP3NotSupported, _) => (io::ErrorKind::Unsupported, too_old(address, "6.0 or older")),
        _ if error.is_timeout() => {
            return io(
                io::ErrorKind::TimedOut,
                format!("Redis at {address} has not answered: it hangs, is overloaded, or cannot be reached"),
            )
            .with_source(error);
        }
        _ if error.is_connection_refusal() => (
            io::ErrorKind::ConnectionRefused,
            format!("there is no Redis at {address}: start it, or correct the address"),
        ),
        _ if error.is_io_error() || error.is_connection_dropped() => (
            io::ErrorKind::ConnectionReset,
            format!("the connection to Redis at {address} has broken: {error}"),
        ),
        _ => (
            io::ErrorKind::Other,
            format!("Redis at {address} has refused an operation"),
        ),
    };
    io(kind, message).with_source(error)
}

/// Whether a user or a password is wrong, or missing.
fn is_login(error: &RedisError) -> bool {
    error.kind() == ErrorKind::AuthenticationFailed
        || matches!(error.code(), Some("WRONGPASS" | "NOAUTH"))
}

/// The message about a node of a cluster.
#[cfg(not(feature = "cluster"))]
pub(crate) fn cluster(address: &str) -> String {
    format!(
        "Redis at {address} is a node of a cluster: build `oxmcp-redis` with its feature `cluster`, or give the address of one that stands alone"
    )
}

/// The message about keys that are at another node.
fn moving(address: &str) -> String {
    format!(
        "keys move between the nodes of the cluster of Redis at {address}: try again when they have"
    )
}

/// The message about several addresses that belong to no cluster.
pub(crate) fn no_cluster(address: &str) -> String {
    format!(
        "Redis at {address} is no cluster, and only a cluster has several addresses: give that of the primary, or those of sentinels, redis-sentinel://host,host/name"
    )
}

/// The message about addresses of sentinels, if the feature is disabled.
#[cfg(not(feature = "sentinel"))]
pub(crate) const NO_SENTINELS: &str =
    "addresses of sentinels need the feature `sentinel` of `oxmcp-redis`";

/// The error of sentinels, or of the primary that they name.
#[cfg(feature = "sentinel")]
pub(crate) fn of_sentinels(error: RedisError, primary: &str, address: &str) -> Error {
    if error.kind() == ErrorKind::MasterNameNotFoundBySentinel {
        let message = format!(
            "the sentinels at {address} know no primary of the name {primary:?} that works: it is the name in their `sentinel monitor`"
        );
        return io(io::ErrorKind::NotFound, message).with_source(error);
    }
    if is_login(&error) {
        let message = format!(
            "the sentinels at {address}, or the primary {primary:?}, want another user or password: redis-sentinel://user:password@host/name \
             has those of the primary, and its ?sentinel_username=…&sentinel_password=… those of the sentinels"
        );
        return io(io::ErrorKind::PermissionDenied, message).with_source(error);
    }
    of_redis(error, address)
}

/// The message about a server that is too old.
pub(crate) fn too_old(address: &str, version: &str) -> String {
    format!("Redis at {address} is {version}: this needs Redis 7.0 or Valkey 7.2, or newer")
}
