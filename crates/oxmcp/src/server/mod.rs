//! Server: its features and sessions, and the dispatch of requests to handlers.

mod ask;
mod completion;
mod definitions;
mod dispatch;
mod features;
#[cfg(feature = "layers")]
pub mod layers;
pub mod logging;
mod prompt;
mod registry;
mod resource;
#[expect(
    clippy::module_inception,
    reason = "readers look for the type `Server` here"
)]
mod server;
mod session;
mod subscriptions;
mod tool;

pub use ask::{Question, Questions, Reply, SessionCall, UserDecision};
pub(crate) use ask::{ask_for_task, known, question_digest};
pub use completion::{
    Completer, CompleterArguments, CompletionInput, IntoCompleter, IntoCompletion,
};
pub use definitions::findings::Finding;
pub(crate) use dispatch::Replay;
#[cfg(feature = "http-server")]
pub(crate) use dispatch::ServerRole;
#[cfg(all(feature = "auth", feature = "http-server"))]
pub(crate) use dispatch::needed_scopes;
#[cfg(feature = "http-server")]
pub(crate) use features::Features;
pub use prompt::attribute::prompt;
pub use prompt::{ArgumentOptions, IntoPromptResult, Prompt, PromptArguments, PromptInput};
pub use registry::IntoFeature;
pub use resource::attribute::resource;
pub use resource::{
    FileResources, IntoResourceResult, Resource, ResourceArguments, ResourceTemplate, StoredFile,
    TemplateArguments, TemplateInput, TemplateVariables, file_mime_type, file_resources,
};
pub use server::{Server, WeakServer};
pub use session::ServerSession;
#[cfg(feature = "http-server")]
pub(crate) use subscriptions::ChangeBus;
pub(crate) use tool::StoredCall;
pub use tool::attribute::tool;
pub use tool::{
    ArgumentTransform, DetachableCall, IntoToolError, IntoToolResult, OrToolError, SearchOptions,
    Structured, StructuredContent, Tool, ToolArguments, ToolCall, ToolError, ToolInput,
    ToolResponse, ToolTransform, Wrapped,
};
