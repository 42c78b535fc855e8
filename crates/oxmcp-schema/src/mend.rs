//! Repair of common mistakes of models in arguments: null for a value to be left out, and JSON within a string.
//!
//! Only values that the validator refused are changed, and only if the whole result is valid. So a valid value keeps its
//! meaning: a string stays a string wherever the schema accepts one.

use std::collections::BTreeMap;

use oxmcp_json::{SPACE, Text, pointer_token};
use serde_json::Value;

use crate::{
    explain::messages::places,
    full::{nodes::Validator, run::BudgetExceeded},
};

/// The maximum number of validations after changes.
const MAX_ROUNDS: usize = 4;
/// The maximum number of changes in one value.
const MAX_CHANGES: usize = 64;

/// A value that is valid after some changes.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "only the SDK may use it")]
pub struct Mended {
    /// The value as JSON.
    pub text: String,
    /// The changes, with the JSON Pointers of the values.
    pub changes: Vec<(String, Change)>,
}

/// A change that makes a value valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "only the SDK may use it")]
pub enum Change {
    /// A null was left out.
    NullLeftOut,
    /// A string was read as JSON.
    StringRead,
    /// A value that means "no members" was replaced by an empty object.
    EmptyObject,
    /// Lone surrogates were replaced by U+FFFD. The place is the value as a whole.
    SurrogatesReplaced,
}

/// Makes an invalid value valid by the changes above. `None` if that is not possible.
pub(crate) fn mend(validator: &Validator, value: Text<'_>) -> Option<Mended> {
    let mut mended = Mended {
        text: value.get().to_owned(),
        changes: Vec::new(),
    };
    if is_nothing(value) {
        mended.text = "{}".to_owned();
        mended.changes.push((String::new(), Change::EmptyObject));
    }
    for _ in 0..MAX_ROUNDS {
        let edits = match edits(validator, &mended.text) {
            Ok(edits) => edits?,
            Err(BudgetExceeded) => return None,
        };
        if edits.is_empty() {
            return (!mended.changes.is_empty()).then_some(mended);
        }
        if mended.changes.len() + edits.len() > MAX_CHANGES {
            return None;
        }
        mended.text = apply(&mended.text, &edits);
        let changes = edits.into_iter().map(|(place, edit)| match edit {
            Edit::LeaveOut => (place, Change::NullLeftOut),
            Edit::Read(_) => (place, Change::StringRead),
        });
        mended.changes.extend(changes);
    }
    None
}

/// Whether a value means "no members": some languages and models write it for an empty object.
fn is_nothing(value: Text<'_>) -> bool {
    let text = value.get();
    let inner = text.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    value.is_null() || value.is_str("") || inner.is_some_and(|it| it.trim_matches(SPACE).is_empty())
}

enum Edit {
    LeaveOut,
    Read(String),
}

type Edits = BTreeMap<String, Edit>;

/// The changes of the values that are refused, by their places; none if the value is valid. `None` if nothing can be changed.
fn edits(validator: &Validator, text: &str) -> Result<Option<Edits>, BudgetExceeded> {
    let Ok(value) = serde_json::from_str::<Value>(text) else {
        return Ok(None);
    };
    if validator.accepts(&value, text.len())? {
        return Ok(Some(Edits::new()));
    }
    let failures = validator.failures(&value, text.len())?;
    let mut edits = Edits::new();
    for place in places(&failures) {
        let edit = match value.pointer(place.pointer) {
            Some(Value::Null) if is_member(&value, place.pointer) => Edit::LeaveOut,
            Some(Value::String(text)) if place.refuses_strings => match read(text) {
                Some(json) => Edit::Read(json),
                None => continue,
            },
            _ => continue,
        };
        edits.insert(place.pointer.to_owned(), edit);
    }
    Ok((!edits.is_empty()).then_some(edits))
}

fn is_member(value: &Value, pointer: &str) -> bool {
    let parent = pointer
        .rsplit_once('/')
        .and_then(|(parent, _)| value.pointer(parent));
    parent.is_some_and(Value::is_object)
}

/// The JSON in a string, if it is not a string itself.
fn read(text: &str) -> Option<String> {
    let json: &serde_json::value::RawValue = serde_json::from_str(text).ok()?;
    let text = Text::from(json);
    let is_other = text.is_string() || text.duplicate_key().is_some();
    (!is_other).then(|| text.get().to_owned())
}

/// Applies the changes. All other values keep their text.
fn apply(text: &str, edits: &Edits) -> String {
    let mut output = String::with_capacity(text.len());
    write(Text::checked(text), "", edits, &mut output);
    output
}

fn write(value: Text<'_>, pointer: &str, edits: &Edits, output: &mut String) {
    if let Some(Edit::Read(json)) = edits.get(pointer) {
        return output.push_str(json);
    }
    let within = format!("{pointer}/");
    let mut after = edits.range(within.clone()..);
    if !after
        .next()
        .is_some_and(|(place, _)| place.starts_with(&within))
    {
        return output.push_str(value.get());
    }
    let is_object = value.is_object();
    output.push(if is_object { '{' } else { '[' });
    let start = output.len();
    let separate = |output: &mut String| {
        if output.len() > start {
            output.push(',');
        }
    };
    if is_object {
        for (key, member) in value.members() {
            let name = key.as_str().unwrap_or_default();
            let place = format!("{within}{}", pointer_token(&name));
            if matches!(edits.get(&place), Some(Edit::LeaveOut)) {
                continue;
            }
            separate(output);
            output.push_str(key.get());
            output.push(':');
            write(member, &place, edits, output);
        }
    } else {
        for (index, item) in value.items().enumerate() {
            separate(output);
            write(item, &format!("{within}{index}"), edits, output);
        }
    }
    output.push(if is_object { '}' } else { ']' });
}
