//! Layers for servers in production: limits on rates, concurrency, time and results, and an audit log.
//!
//! Each of them is a [middleware](crate::middleware), added with [`Server::layer`](crate::Server::layer). A layer that you do not
//! add costs nothing. The first layer is outermost: put [`Audit`] first, so that it also records the calls that the other
//! layers refuse.
//!
//! ```
//! use std::time::Duration;
//! use oxmcp::{Server, layers::{Audit, ConcurrencyLimit, KeptResults, RateLimit, ResultLimit, Timeout}};
//!
//! let kept = KeptResults::new();
//! let server = Server::new("reports", "1.0.0")
//!     .layer(Audit::new(|entry| println!("{entry}")))
//!     .layer(RateLimit::new(120, Duration::from_secs(60)).per_principal())
//!     .layer(ConcurrencyLimit::new(4).per_principal())
//!     .layer(ResultLimit::new(100_000).keep(&kept))
//!     .layer(Timeout::new(Duration::from_secs(30)))
//!     .resource_template(kept.template());
//! # let _ = server;
//! ```
//!
//! The limits apply to one process: on several nodes, each counts its own requests.

mod audit;
mod concurrency_limit;
mod counted;
mod kept_results;
mod rate_limit;
mod redaction;
mod result_limit;
mod timeout;

pub use audit::{Audit, AuditEntry, AuditOutcome, Audited};
pub use concurrency_limit::{ConcurrencyLimit, ConcurrencyLimited};
pub use kept_results::KeptResults;
pub use rate_limit::{RateLimit, RateLimited};
pub use result_limit::{ResultLimit, ResultLimited};
pub use timeout::{Timeout, TimeoutService};
