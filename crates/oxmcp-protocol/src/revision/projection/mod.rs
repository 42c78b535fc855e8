//! Projection: messages are fitted to the revision of the peer.
//!
//! Every outgoing message is projected once, so that a peer never receives a member that its revision cannot parse:
//! members that it does not have are dropped, or expressed in another way if there is one. A member that it names
//! differently is moved to a second field of the type, which has that name; reading accepts both names, by a serde
//! `alias` on the first. `rename_tests.rs` is an example.

mod content;
mod elicitation;
mod messages;
pub(crate) mod project;
mod sampling;
mod structured;
mod tools;

#[cfg(test)]
mod official_tests;
#[cfg(test)]
mod rename_tests;
