//! The router of several servers behind one: which name or URI belongs to which server. It does no I/O.
//!
//! A name is routed by the table of the names that were listed, and never by splitting it: the tool `b_c` of the server `a`
//! and the tool `c` of the server `a_b` are two tools. The names depend only on what was listed, and not on the order in which
//! the servers listed it.
//!
//! ```
//! use oxmcp_group::router::{NameTable, Naming};
//!
//! let table = NameTable::new(&Naming::default(), &[("files", vec!["read", "write"]), ("mail", vec!["read"])]);
//! assert_eq!(table.exposed(0, "read"), Some("files_read"));
//! assert_eq!(table.target("mail_read"), Some((1, "read")));
//! ```

mod distinct;
mod names;
mod uris;

pub use names::{NameTable, Naming, Prefix};
pub use uris::{Hosts, ListedUris, UriTable};
