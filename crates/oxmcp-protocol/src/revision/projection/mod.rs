//! Projection: messages are fitted to the revision of the peer.
//!
//! Every outgoing message is projected once, so that a peer never receives a member that its revision cannot parse:
//! members that it does not have are dropped, or expressed in another way if there is one.

mod content;
mod elicitation;
mod messages;
pub(crate) mod project;
mod sampling;
mod structured;
mod tools;

#[cfg(test)]
mod official_tests;
