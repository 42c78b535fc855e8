//! Revisions of the protocol, and all that differs between them.
//!
//! Nothing outside of this room compares revisions.
//!
//! | | |
//! |---|---|
//! | `version` | [`Revision`], and the questions that it answers |
//! | `method` | the methods: a type for each, and the table of the revisions that have them |
//! | `negotiation` | the decision which revision to speak with a server |
//! | `projection` | messages made to fit the revision of the peer |

pub mod method;
pub(crate) mod negotiation;
pub(crate) mod projection;
pub(crate) mod version;

pub use version::{Revision, UnknownRevision};
