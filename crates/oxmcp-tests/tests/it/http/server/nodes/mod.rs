//! Several nodes that serve the same sessions.

mod changes;
mod pair;
mod questions;
mod quota;
mod sessions;
mod standing;
mod streams;
