//! Sessions that several nodes have: their news, the streams that others write, and the messages that others wait for.
//!
//! | | |
//! |---|---|
//! | `news` | what nodes tell each other about sessions, and what each does about it |
//! | `follower` | a stream that another node writes, and its end where that node is gone |
//! | `standing` | the stream that a client gets by GET, at whichever node: who has it, and how much of it was sent |
//! | `forward` | what belongs to no request, into that stream, where its client does not listen here |
//! | `questions` | answers to what this node has asked, which come to another |
//! | `relay` | messages of clients that another node waits for |

mod follower;
mod forward;
mod news;
mod questions;
mod relay;
mod standing;

pub(super) use follower::Follower;
pub(super) use forward::Forwarder;
pub(in crate::http::server) use relay::{relay, relay_batch};
pub(super) use standing::Standing;
