//! Servers: tools, prompts, completion, lists, revisions, sessions.

mod asking;
mod changes;
mod completion;
mod handlers;
mod listen;
mod negotiation;
mod pages;
mod prompt_arguments;
mod prompts;
mod sessions;
mod span;
mod tools;
mod validation;
mod views;
