//! The server: what it offers, to whom, and how requests are served.

mod ask;
mod by_name;
mod callers;
mod changes;
mod completion;
mod dispatch;
mod extension;
mod features;
mod files;
mod handle;
mod listen;
mod lists;
pub mod logging;
mod methods;
mod opening;
mod peer;
mod prompt;
mod registry;
mod resource;
mod session;
mod sessions;
mod span;
mod subscription;
mod tool;

use crate::session::{failure, handler};
#[cfg(feature = "http-server")]
pub(crate) use ask::random;
pub use ask::{Asked, Question, Questions, Reply, SessionCall, StateKey};
pub use completion::{Completer, CompleterArguments, Completing, IntoCompleter, IntoCompletion};
#[cfg(feature = "http-server")]
pub(crate) use features::Features;
pub use files::{FileResources, file_resources};
pub use handle::Server;
#[cfg(feature = "http-server")]
pub(crate) use peer::ServerPeer;
pub use prompt::{ArgumentOptions, IntoPromptResult, Prompt, PromptArguments, PromptInput};
pub use resource::{
    IntoResourceResult, Resource, ResourceArguments, ResourceTemplate, TemplateArguments,
    TemplateInput, TemplateVariables,
};
pub use session::ServerSession;
pub use tool::{
    IntoToolError, IntoToolResult, Structured, Tool, ToolArguments, ToolError, ToolInput,
};
