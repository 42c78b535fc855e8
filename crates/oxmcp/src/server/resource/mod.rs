//! Resources: data that clients can read.
//! See [resources](https://modelcontextprotocol.io/specification/2026-07-28/server/resources).
//!
//! | file | contents |
//! |---|---|
//! | `definition.rs` | [`Resource`] |
//! | `template.rs` | [`ResourceTemplate`]: many resources with one handler |
//! | `handler.rs` | the functions that can be handlers, and their arguments |
//! | `variables.rs` | the variables of a template in a URI |
//! | `output.rs` | the types that a handler may return |
//! | `registered.rs` | resources and templates in a server's registry, and the order in which templates are matched |
//! | `attribute.rs` | the attribute `#[resource]` |
//! | `server.rs` | adding and removing the resources of a server |
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
