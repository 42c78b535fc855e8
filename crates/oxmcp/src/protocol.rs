//! Types of the protocol, under the specification's names: those of the crate `oxmcp-protocol`.
//!
//! Types hold the members of all revisions at once; their docs say which revisions have which. What is sent is made
//! to fit the peer's revision on its way out, so nothing else has to care.
//!
//! Structs are open for members that later revisions add, and enums for variants: make them by their constructors,
//! and set what else there is to set.
//!
//! Four names are here and at the crate's root: `Tool`, `Prompt`, `Resource` and `ResourceTemplate`. Here they are what a list shows to a
//! client, data that can be written and read. At the root they are what a server is given, with the functions that do the work;
//! what is here they make of themselves.
//!
//! ```
//! use oxmcp::protocol::{Tool, ToolAnnotations};
//!
//! let mut tool = Tool::new("add", serde_json::json!({"type": "object"}))
//!     .with_description("Add two numbers")
//!     .with_annotations(ToolAnnotations::default().with_read_only_hint(true));
//! tool.meta.insert("com.example/cost", 3);
//! ```

#[doc(inline)]
pub use oxmcp_protocol::{Revision, TemplateError, method, revision, types::*};
