//! Lenient reading of messages that deviate from the specification.
//!
//! A message is read strictly first. If that fails, the same text is read again by a deserializer that knows which kind of
//! value each type expects: it reads `null` as an absent member, `[]` as an empty object, and text as a number, and leaves
//! out members and entries that still do not fit. It returns the value and a list of the deviations. [`Leniency`] lists
//! every deviation that is tolerated.

mod deserializer;
mod envelope;
mod error;
mod leniency;
mod list;
mod reading;
mod repair;
mod schema;
mod state;

pub use envelope::mend_message;
pub use leniency::{Leniency, Tolerated};
pub(crate) use list::{Entry, list, optional_list};
pub use reading::{Reading, read};
pub use repair::without_lone_surrogates;
pub(crate) use schema::{optional_schema, schema};

/// The name by which a tagged union announces itself to a [`Deserializer`](deserializer::Lenient).
pub(crate) const TAGGED: &str = "$oxmcp::tagged";
/// The name by which a tagged union announces itself that keeps each object which does not fit its tag as an unknown variant.
pub(crate) const BLOCK: &str = "$oxmcp::block";
/// The name by which a field of a form announces itself.
pub(crate) const FIELD: &str = "$oxmcp::field";
/// The name by which bytes in base64 announce themselves.
pub(crate) const BASE64: &str = "$oxmcp::base64";
/// The name by which a list that may be a single item announces itself.
pub(crate) const ONE_OR_MANY: &str = "$oxmcp::one-or-many";
/// The name by which a JSON Schema announces itself.
const SCHEMA: &str = "$oxmcp::schema";
/// The name by which an entry of a list announces itself.
const ENTRY: &str = "$oxmcp::entry";

#[cfg(test)]
mod tests;
