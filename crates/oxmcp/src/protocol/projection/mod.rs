//! Making what is sent fit the peer's revision.
//!
//! Everything that leaves passes through here once, and a peer is never sent what its revision cannot parse: members
//! that it does not have are dropped, and what can be said in another way is said so.

mod capabilities;
mod content;
mod elicitation;
mod errors;
mod messages;
mod sampling;
mod structured;
mod tools;

pub(crate) use errors::project_error;

use super::{Meta, Revision};

/// What can be made to fit a revision.
pub(crate) trait Project {
    /// Drops or rewrites what `to` does not have. What fits already costs next to nothing.
    fn project(&mut self, to: Revision);
}

impl<T: Project> Project for Vec<T> {
    fn project(&mut self, to: Revision) {
        for item in self {
            item.project(to);
        }
    }
}

impl<T: Project> Project for Option<T> {
    fn project(&mut self, to: Revision) {
        if let Some(item) = self {
            item.project(to);
        }
    }
}

impl<T: Project> Project for Box<T> {
    fn project(&mut self, to: Revision) {
        (**self).project(to);
    }
}

/// `_meta` of a part of a message. (That of the message itself is in every revision.)
fn part_meta(meta: &mut Meta, to: Revision) {
    if !to.has_part_meta() {
        *meta = Meta::default();
    }
}
