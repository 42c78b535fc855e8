//! Revisions of the protocol, and all differences between them.
//!
//! No code outside of this module compares revisions.

pub mod method;
pub(crate) mod negotiation;
pub(crate) mod projection;
pub(crate) mod version;

pub use version::{Revision, UnknownRevision};
