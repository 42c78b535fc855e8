//! Shared parts of the examples: a host of apps, an authorization server for development, a simulated browser, a load balancer, and processes.

#[cfg(feature = "apps")]
mod app_host;
#[cfg(feature = "cluster")]
mod balancer;
#[cfg(feature = "authorization")]
mod browser;
#[cfg(feature = "authorization")]
mod issuer;
#[cfg(feature = "cluster")]
mod processes;

#[cfg(feature = "apps")]
pub use app_host::AppHost;
#[cfg(feature = "cluster")]
pub use balancer::balance;
#[cfg(feature = "authorization")]
pub use browser::{browse, simulated_login};
#[cfg(feature = "authorization")]
pub use issuer::DevelopmentIssuer;
#[cfg(feature = "cluster")]
pub use processes::{Process, free_address, redis};

/// Any error.
pub type AnyError = Box<dyn std::error::Error + Send + Sync>;
