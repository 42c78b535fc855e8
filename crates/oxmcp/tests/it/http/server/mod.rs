//! The endpoint.

mod batched_appends;
mod get_stream;
pub(crate) mod legacy;
mod modern;
mod nodes;
pub(crate) mod peer;
mod restored_sessions;
mod resumption;
mod session_records;
mod shared_stores;
mod shutdown;
