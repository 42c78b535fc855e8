//! Resources: what a client may read.
//! See [resources](https://modelcontextprotocol.io/specification/2026-07-28/server/resources).

mod definition;
mod handler;
mod offer;
mod options;
mod output;
mod reader;
mod registered;
mod routes;
mod template;
mod variables;

pub use definition::Resource;
pub(super) use handler::no_such;
pub use handler::{ResourceArguments, TemplateArguments, TemplateInput};
pub(super) use offer::read_resource;
pub use output::IntoResourceResult;
pub(super) use reader::{ErasedHandler, Held, Target};
pub(crate) use registered::{RegisteredResource, RegisteredTemplate};
pub(crate) use routes::Routes;
pub use template::ResourceTemplate;
pub use variables::TemplateVariables;
