//! Discovery of a server's revision: the probe, the fallback, and the remembered results.

mod mortal_servers;
pub(crate) mod negotiation;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod reconnecting;
mod restarts;
mod slow_servers;
mod surfaced_failures;
