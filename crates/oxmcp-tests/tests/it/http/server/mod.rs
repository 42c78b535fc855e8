//! The HTTP endpoint of a server: modern requests, legacy sessions, resumption, stores and shutdown.

mod batched_appends;
mod draining;
mod get_stream;
pub(crate) mod legacy;
mod modern;
mod nodes;
pub(crate) mod peer;
#[cfg(feature = "auth")]
mod protection;
mod restored_sessions;
mod resumption;
mod session_records;
mod shared_stores;
mod shutdown;
mod tasks;
