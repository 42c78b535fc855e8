//! Sessions that several nodes have: news about them, streams that other nodes write, and messages for other nodes.
//!
//! | | |
//! |---|---|
//! | `news` | the messages between nodes about sessions, and their processing |
//! | `follower` | a stream that another node writes, and its end if that node is gone |
//! | `get_stream` | the stream that a client opens with GET: the node that sends it, and the events that were sent |
//! | `forward` | forwarding of messages that belong to no request into that stream, if its client listens on another node |
//! | `questions` | answers to this node's requests to clients, if another node receives them |
//! | `relay` | messages of clients that another node waits for |
//! | `undelivered` | how many of them may wait for the store |

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
