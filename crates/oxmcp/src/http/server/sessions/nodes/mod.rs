//! Sessions that several nodes share: notifications about them, streams that other nodes write, and messages for other nodes.

mod follower;
mod forward;
mod get_stream;
mod questions;
mod relay;
mod session_bus;
mod undelivered;

pub(super) use follower::Follower;
pub(super) use forward::Forwarder;
pub(super) use get_stream::GetStream;
pub(in crate::http::server) use relay::{relay, relay_batch};
pub(in crate::http::server) use undelivered::Undelivered;
