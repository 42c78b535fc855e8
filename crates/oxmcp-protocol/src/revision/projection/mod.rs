//! Projection: messages made to fit the revision of the peer.
//!
//! Everything that leaves passes through here once, and a peer is never sent what its revision cannot parse: members
//! that it does not have are dropped, and what can be said in another way is said so.
//!
//! | | |
//! |---|---|
//! | `project` | the trait of what can be projected, and the error codes |
//! | `messages` | params, results and capabilities |
//! | `tools`, `structured` | tools and their results, structured content included; the schemas of tools |
//! | `content` | content, resources, descriptions |
//! | `elicitation`, `sampling` | questions to users, conversations with a model |

mod content;
mod elicitation;
mod messages;
pub(crate) mod project;
mod sampling;
mod structured;
mod tools;

#[cfg(test)]
mod official_tests;
