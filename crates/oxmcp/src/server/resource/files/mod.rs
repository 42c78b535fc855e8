//! Directories that are served as resources.
//! See [`file://`](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#file%3A%2F%2F).
//!
//! | file | contents |
//! |---|---|
//! | `definition.rs` | [`FileResources`] |
//! | `read.rs` | reading a file as a resource |
//! | `roots.rs` | the roots of a client, which bound the files that it may read |
//! | `path.rs` | paths in URIs |
//! | `directory.rs` | reading and listing below a directory, and nothing outside of it |
//! | `entry.rs`, `unix.rs`, `portable.rs` | the file system |

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
