//! Lenient reading: messages of real peers that do not follow the specification to the letter.
//!
//! A message is read strictly first. Only where that fails is the same text read again, by a deserializer that knows which kind of
//! value each type wants: it takes `null` for an absent member, `[]` for an empty object, text for a number, and leaves out members
//! and entries that still do not fit. It returns the value and the list of what it tolerated. [`Leniency`] is the table of all that
//! is tolerated.

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
pub(crate) use list::{list, optional_list};
pub use reading::{Reading, read};
pub(crate) use schema::{optional_schema, schema};

/// The name by which a tagged union announces itself to a [`Deserializer`](deserializer::Lenient).
pub(crate) const TAGGED: &str = "$oxmcp::tagged";
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
