use serde::Serialize;

use super::{HasMeta, Meta, Project, Revision};

/// What a message carries: the params or the result of a method.
///
/// It is implemented for the types of this module, which is all that methods can carry.
pub trait Payload: Serialize + Send + Sync + Carried {}

impl<T: Serialize + Send + Sync + Carried> Payload for T {}

/// What the crate does with a payload. Nobody else can name it, so nobody else can implement [`Payload`].
#[expect(unnameable_types, reason = "that seals the trait above")]
pub trait Carried {
    /// The `_meta`. `None` where there is no place for one.
    fn metadata(&mut self) -> Option<&mut Meta>;

    /// Makes it fit a revision.
    fn fit(&mut self, to: Revision);
}

impl<T: HasMeta + Project> Carried for T {
    fn metadata(&mut self) -> Option<&mut Meta> {
        self.meta_mut()
    }

    fn fit(&mut self, to: Revision) {
        self.project(to);
    }
}
