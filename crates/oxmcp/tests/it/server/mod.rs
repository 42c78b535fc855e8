//! Servers: tools, lists, revisions, sessions.

mod changes;
mod handlers;
mod listen;
mod negotiation;
mod pages;
mod sessions;
mod span;
mod tools;
mod validation;
mod views;
