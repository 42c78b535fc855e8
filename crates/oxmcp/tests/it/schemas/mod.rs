//! Messages of real peers against the official schemas of all revisions.

mod emitted;
#[path = "../../../../oxmcp-protocol/tests/official/schema.rs"]
#[expect(dead_code, reason = "the tests of the protocol use the rest")]
mod official;

use oxmcp::Revision;

pub(crate) use self::official::Schema;
