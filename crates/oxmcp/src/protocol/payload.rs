use serde::Serialize;

use super::{HasMeta, Meta, Project, Revision};

/// What a message carries: the params or the result of a method.
///
/// It is implemented for the types of this module. Types of your own, for the methods of an
/// [extension](crate::extension), need nothing but `impl Payload for Mine {}`. They are JSON objects.
///
/// ```
/// use oxmcp::protocol::Payload;
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct WindParams { turns: u32 }
///
/// impl Payload for WindParams {}
/// ```
pub trait Payload: Serialize + Send + Sync {
    /// The `_meta`. `None` where there is no place for one.
    fn metadata(&mut self) -> Option<&mut Meta> {
        None
    }

    /// Makes it fit the revision of the peer that it is sent to: drops or rewrites what that revision does not have.
    fn fit(&mut self, to: Revision) {
        let _ = to;
    }
}

impl<T: HasMeta + Project + Send + Sync> Payload for T {
    fn metadata(&mut self) -> Option<&mut Meta> {
        self.meta_mut()
    }

    fn fit(&mut self, to: Revision) {
        self.project(to);
    }
}
