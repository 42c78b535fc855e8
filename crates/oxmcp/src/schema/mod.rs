//! [JSON Schema](https://json-schema.org): inferred from types, customised, written down, and used to validate.

mod bounds;
mod check;
mod derive;
mod document;
mod expected;
mod explain;
mod full;
mod infer;
mod kinds;
mod misfit;
mod options;
mod order;
mod portable;
mod read;
mod refused;
mod rules;
mod spelling;
mod stream;
mod strings;
mod values;
mod violations;

#[cfg(test)]
mod alike_tests;
#[cfg(test)]
mod tests;

pub use derive::JsonSchema;
pub use document::Schema;
pub(crate) use expected::{list, quote_text};
pub use options::SchemaOptions;
pub use order::declared;
pub(crate) use refused::refused_property;
pub(crate) use spelling::nearest;
pub(crate) use strings::{Given, StringFields};
pub use violations::{Violation, Violations};
