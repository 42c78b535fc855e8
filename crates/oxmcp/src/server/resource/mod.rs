//! Resources: what a client may read.
//! See [resources](https://modelcontextprotocol.io/specification/2026-07-28/server/resources).
//!
//! | file | what is in it |
//! |---|---|
//! | `definition.rs` | [`Resource`] |
//! | `template.rs` | [`ResourceTemplate`]: many resources with one handler |
//! | `handler.rs` | the functions that can be a handler, and their arguments |
//! | `variables.rs` | the variables of a template in a URI |
//! | `output.rs` | what a handler may return |
//! | `registered.rs` | resources and templates in a server's registry, and the order in which templates are matched |
//! | `attribute.rs` | `#[resource]`, which makes one of a function |
//! | `server.rs` | adding resources to a server and removing them |
//! | `files/` | directories that are served as resources |

pub(super) mod attribute;
mod definition;
mod files;
mod handler;
mod output;
mod registered;
mod server;
mod template;
mod variables;

pub use definition::Resource;
pub use files::{FileResources, file_resources};
pub(super) use handler::Target;
pub use handler::{ResourceArguments, TemplateArguments, TemplateInput};
pub use output::IntoResourceResult;
pub(crate) use registered::{RegisteredResource, RegisteredTemplate, Routes};
pub use template::ResourceTemplate;
pub use variables::TemplateVariables;
