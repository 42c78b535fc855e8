//! Servers: tools, prompts, completion, lists, revisions, sessions.

mod asking;
mod changes;
mod completion;
mod files;
mod handlers;
mod listen;
#[cfg(feature = "tracing-subscriber")]
mod log_layer;
mod log_rate;
mod log_session;
mod logging;
mod negotiation;
mod pages;
mod prompts;
mod resources;
mod sessions;
mod span;
mod state;
mod subscriptions;
mod table;
mod templates;
mod tools;
mod validation;
mod views;
