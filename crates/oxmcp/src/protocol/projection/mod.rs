//! Making what is sent fit the peer's revision.
//!
//! Everything that leaves passes through here once, and a peer is never sent what its revision cannot parse: members
//! that it does not have are dropped, and what can be said in another way is said so.

mod capabilities;
mod content;
mod elicitation;
mod errors;
mod messages;
mod project;
mod sampling;
mod structured;
mod tools;

pub(crate) use errors::project_error;
pub(crate) use project::Project;
use project::part_meta;
