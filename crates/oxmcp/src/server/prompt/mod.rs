//! Prompts: message templates that users choose from.
//! See [prompts](https://modelcontextprotocol.io/specification/2026-07-28/server/prompts).

pub(crate) mod attribute;
mod definition;
mod handler;
mod output;
mod registered;
mod server;

pub use definition::{ArgumentOptions, Prompt};
pub use handler::{PromptArguments, PromptInput};
pub use output::IntoPromptResult;
pub(crate) use registered::RegisteredPrompt;
