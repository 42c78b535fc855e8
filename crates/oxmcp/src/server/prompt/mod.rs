//! Prompts: templates of conversations, for users to choose from.
//! See [prompts](https://modelcontextprotocol.io/specification/2026-07-28/server/prompts).
//!
//! | file | content |
//! |---|---|
//! | `definition.rs` | [`Prompt`], and the options of its arguments |
//! | `handler.rs` | the functions that can be a handler, and their arguments |
//! | `output.rs` | the types that a handler may return |
//! | `registered.rs` | a prompt in a server's registry |
//! | `attribute.rs` | `#[prompt]`, which makes a prompt of a function |
//! | `server.rs` | adding prompts to a server and removing them |

pub(super) mod attribute;
mod definition;
mod handler;
mod output;
mod registered;
mod server;

pub use definition::{ArgumentOptions, Prompt};
pub use handler::{PromptArguments, PromptInput};
pub use output::IntoPromptResult;
pub(crate) use registered::RegisteredPrompt;
