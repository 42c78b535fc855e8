//! Revisions of the protocol, and all differences between them.
//!
//! No code outside of this module compares revisions.
//!
//! | | |
//! |---|---|
//! | `version` | [`Revision`], and its features |
//! | `method` | the methods: a type for each, and the table of the revisions that have them |
//! | `negotiation` | the choice of the revision for a server |
//! | `projection` | fitting of messages to the revision of the peer |

pub mod method;
pub(crate) mod negotiation;
pub(crate) mod projection;
pub(crate) mod version;

pub use version::{Revision, UnknownRevision};
