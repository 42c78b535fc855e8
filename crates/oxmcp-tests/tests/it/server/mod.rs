//! Servers: dispatch, features, logging, questions, subscriptions.

mod ask;
#[cfg(feature = "http-server")]
mod building;
mod completion;
mod definitions;
mod dispatch;
mod files;
mod findings;
#[cfg(all(feature = "http-client", feature = "http-server"))]
pub(crate) mod layers;
mod logging;
mod prompt;
mod resource;
mod shared_state;
mod subscriptions;
mod tool;
