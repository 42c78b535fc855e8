//! Messages for values that a type refuses although its schema accepts them.
//!
//! The type's own error has the words of its parser, and often names Rust types. The message names the value that was sent
//! and the value that is expected.

use oxmcp_json::Text;
use serde::de::DeserializeOwned;
use serde_json::{Error, Value};

use crate::{
    explain::{
        expected::{brief, expected, list, quote_text, shorten},
        formats::misformatted,
        integers::refused_number,
        refused::refused_property,
    },
    infer::references::target,
    schema::Schema,
    violations::{Violation, Violations},
};

/// Describes the error of a type that cannot be read from an object, although the schema accepts it.
#[must_use]
pub fn refusal<T: DeserializeOwned>(
    schema: Option<&Schema>,
    object: Text<'_>,
    error: &Error,
) -> Violations {
    describe(schema, object, error, refused_property::<T>(object))
}

/// The same for an error whose place is known: the JSON Pointer of a member.
pub(crate) fn describe(
    schema: Option<&Schema>,
    object: Text<'_>,
    error: &Error,
    place: Option<String>,
) -> Violations {
    let anything = Value::Bool(true);
    let schema = schema.map_or(&anything, Schema::marked);
    let misformatted = misformatted(schema, object, place.as_deref());
    if !misformatted.is_empty() {
        let is_cut = misformatted.len() > Violations::MAX;
        let failures = misformatted.into_iter().take(Violations::MAX);
        let failures = failures.map(|(pointer, message)| Violation {
            pointer: shorten(&pointer),
            message,
        });
        return Violations {
            failures: failures.collect(),
            is_cut,
        };
    }
    // The position refers to an internal copy of the value.
    let error = error.to_string();
    let error = error.rsplit_once(" at line ").map_or(&*error, |it| it.0);
    let place = place.unwrap_or_default();
    let message = refused_number(error)
        .or_else(|| of_serde(error))
        .unwrap_or_else(|| {
            if is_of_types(error) {
                unexpected(schema, object, &place)
            } else {
                shorten(error)
            }
        });
    Violations::one(&place, message)
}

/// Rewrites those errors of serde that are about names.
fn of_serde(error: &str) -> Option<String> {
    let name = |rest: &str| Some(quote_text(rest.strip_prefix('`')?.split('`').next()?));
    let names = |rest: &str| {
        let names = rest.split('`').skip(1).step_by(2);
        list(names.map(quote_text))
    };
    if let Some(rest) = error.strip_prefix("missing field ") {
        return Some(format!("{} is missing", name(rest)?));
    }
    if let Some(rest) = error.strip_prefix("duplicate field ") {
        return Some(format!("duplicate key {}; send it once", name(rest)?));
    }
    let rest = error
        .strip_prefix("unknown field ")
        .or_else(|| error.strip_prefix("unknown variant "))?;
    let (found, known) = rest.split_once(", ").unwrap_or((rest, ""));
    let found = name(found)?;
    Some(match names(known) {
        known if known.is_empty() => format!("{found} is not accepted"),
        known => format!("{found} is not accepted; expected one of {known}"),
    })
}

/// Whether the error of serde is about types, whose names mean nothing to the author of the value.
fn is_of_types(error: &str) -> bool {
    let beginnings = [
        "invalid type: ",
        "invalid value: ",
        "invalid length ",
        "data did not match",
    ];
    beginnings.iter().any(|it| error.starts_with(it))
}

fn unexpected(schema: &Value, object: Text<'_>, place: &str) -> String {
    let value: Option<Value> = object.parse().ok();
    let found = value.as_ref().and_then(|it| it.pointer(place));
    let name = place.strip_prefix('/').unwrap_or_default();
    let name = name.replace("~1", "/").replace("~0", "~");
    let mut part = match place {
        "" => Some(schema),
        _ => schema.get("properties").and_then(|it| it.get(&name)),
    };
    if let Some(reference) = part.and_then(|it| it.get("$ref")) {
        part = target(reference, schema);
    }
    let found = found.map_or_else(|| "this".to_owned(), brief);
    match part.map(expected) {
        Some(wanted) if wanted != "another value" => {
            format!("{found} is not accepted; expected {wanted}")
        }
        _ => format!("{found} is not accepted"),
    }
}
