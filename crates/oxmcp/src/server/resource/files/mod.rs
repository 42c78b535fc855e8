//! Directories served as resources.
//! See [`file://`](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#file%3A%2F%2F).

mod definition;
mod directory;
mod entry;
mod path;
mod read;
mod roots;

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(not(unix), path = "portable.rs")]
mod system;

pub use definition::{FileResources, file_resources};
pub use directory::StoredFile;
pub use read::file_mime_type;
