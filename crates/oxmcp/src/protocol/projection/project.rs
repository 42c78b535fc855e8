use crate::protocol::{Meta, Revision};

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
pub(super) fn part_meta(meta: &mut Meta, to: Revision) {
    if !to.has_part_meta() {
        *meta = Meta::default();
    }
}
