//! The server's side: sources of skills, the snapshot that is served, and the methods.

mod extension;
mod registry;
mod server_ext;
mod skills;
mod snapshot;
mod source;

pub use server_ext::ServerExt;
pub use skills::Skills;
