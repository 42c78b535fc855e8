//! Prompts: templates of conversations, for users to choose from.
//! See [prompts](https://modelcontextprotocol.io/specification/2026-07-28/server/prompts).

mod argument;
mod definition;
mod handler;
mod offer;
mod output;
mod registered;

pub use argument::ArgumentOptions;
pub use definition::Prompt;
pub use handler::{PromptArguments, PromptInput};
pub use output::IntoPromptResult;
pub(crate) use registered::RegisteredPrompt;
