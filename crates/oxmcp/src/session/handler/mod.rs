pub(crate) mod context;
pub(crate) mod error;
pub(crate) mod traits;
pub(crate) mod with_state;

pub use traits::{Handler, HandlerContext, HandlerFuture};
