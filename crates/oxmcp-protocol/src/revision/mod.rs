//! Revisions of the protocol, and all that differs between them.
//!
//! Nothing outside of this room and of the tables in [`method`](crate::method) compares revisions.
//!
//! | | |
//! |---|---|
//! | `version` | [`Revision`], and the questions that it answers |
//! | `negotiation` | the decision which revision to speak with a server |
//! | `projection` | messages made to fit the revision of the peer |

pub(crate) mod negotiation;
pub(crate) mod projection;
pub(crate) mod version;

pub use version::{Revision, UnknownRevision};
