//! Sessions that several nodes share: notifications about them, streams that other nodes write, and messages for other nodes.

mod follower;
mod forward;
mod get_stream;
mod questions;
mod relay;
mod session_bus;
mod undelivered;

pub(crate) use follower::Follower;
pub(crate) use forward::Forwarder;
pub(crate) use get_stream::GetStream;
pub(crate) use relay::{relay, relay_batch};
pub(crate) use undelivered::{Confirmations, Undelivered};
