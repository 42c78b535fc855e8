//! Violations: descriptions of the errors in a value, for its author to correct.

use std::{error::Error as StdError, fmt};

/// The violations of a schema by a value, in words that a language model can act on.
///
/// The `Display` form has one line per violation: the [JSON Pointer](https://www.rfc-editor.org/rfc/rfc6901) of the
/// position, the error, and the accepted values. The number of violations and the length of each line are bounded for
/// every value.
///
/// ```
/// use serde_json::{json, value::to_raw_value};
///
/// let schema = oxmcp_schema::Schema::from_json(json!({
///     "type": "object",
///     "properties": {"unit": {"enum": ["C", "F"]}},
///     "required": ["unit"],
/// }))?;
/// let violations = schema.validate(&to_raw_value(&json!({"unit": "K"}))?).unwrap_err();
/// assert_eq!(violations.to_string(), r#"/unit: "K" is not accepted; expected one of "C", "F""#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violations {
    pub(crate) failures: Vec<Violation>,
    /// Whether there are more violations than are listed.
    pub(crate) is_cut: bool,
}

/// One of the [`Violations`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub(crate) pointer: String,
    pub(crate) message: String,
}

impl Violations {
    /// The maximum number of listed violations: a model corrects a few at a time, and pays for each word.
    pub(crate) const MAX: usize = 8;

    pub(crate) fn one(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        let failure = Violation {
            pointer: pointer.into(),
            message: message.into(),
        };
        Self {
            failures: vec![failure],
            is_cut: false,
        }
    }

    /// Returns the violations, in the order in which the schema finds them. There is always at least one.
    pub fn iter(&self) -> impl Iterator<Item = &Violation> {
        self.failures.iter()
    }
}

impl Violation {
    /// Returns the JSON Pointer of the offending value; empty for the root.
    #[must_use]
    pub fn pointer(&self) -> &str {
        &self.pointer
    }

    /// Returns the error, and the accepted values.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pointer = if self.pointer.is_empty() {
            "/"
        } else {
            &self.pointer
        };
        write!(f, "{pointer}: {}", self.message)
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, failure) in self.failures.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            failure.fmt(f)?;
        }
        if self.is_cut {
            f.write_str("\nThere are more errors; fix these first.")?;
        }
        Ok(())
    }
}

impl StdError for Violations {}
