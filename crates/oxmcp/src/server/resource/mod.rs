//! Resources: data that clients can read.
//! See [resources](https://modelcontextprotocol.io/specification/2026-07-28/server/resources).

pub(crate) mod attribute;
mod definition;
mod files;
mod handler;
mod output;
mod registered;
mod server;
mod template;
mod variables;

pub use definition::Resource;
pub use files::{FileResources, StoredFile, file_mime_type, file_resources};
pub(crate) use handler::Target;
pub use handler::{ResourceArguments, TemplateArguments, TemplateInput};
pub use output::IntoResourceResult;
pub(crate) use registered::{Reader, RegisteredResource, RegisteredTemplate, Routes};
pub use template::ResourceTemplate;
pub use variables::TemplateVariables;
