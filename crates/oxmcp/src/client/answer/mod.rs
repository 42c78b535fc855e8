//! What a client does for servers: it asks the user and the model, and tells its roots.

mod arguments;
mod elicit;
mod roots;
mod sample;

pub use arguments::AnswerArguments;
pub(super) use arguments::Answerer;
pub use elicit::{Accept, IntoElicitResult};
pub(super) use elicit::{fill_form, visit_url};
pub(super) use roots::RootChanges;
pub use sample::IntoCreateMessageResult;
