//! Short descriptions of schemas and values.

use std::fmt::Write;

use serde_json::{Map, Value};

/// The maximum number of names or values in a list.
const MAX_LISTED: usize = 16;
/// The maximum length of a quoted value, in characters.
const MAX_QUOTED: usize = 60;

/// Describes the values that a schema accepts: `a number`, `one of "C", "F"`, `a string or null`.
pub(crate) fn expected(schema: &Value) -> String {
    let Value::Object(map) = schema else {
        return "another value".to_owned();
    };
    if let Some(values) = listed(map) {
        return match values {
            [only] => literal(only),
            values => format!("one of {}", list(values.iter().map(literal))),
        };
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(forms) = map.get(keyword).and_then(Value::as_array) {
            return either(forms.iter().map(expected));
        }
    }
    match map.get("type") {
        Some(Value::String(name)) => with_limits(name, map),
        Some(Value::Array(names)) => either(
            names
                .iter()
                .filter_map(Value::as_str)
                .map(|name| with_limits(name, map)),
        ),
        _ => "another value".to_owned(),
    }
}

/// The values that a schema lists in `const` or `enum`, if it has one of them.
pub(crate) fn listed(map: &Map<String, Value>) -> Option<&[Value]> {
    match (map.get("const"), map.get("enum")) {
        (Some(value), _) => Some(std::slice::from_ref(value)),
        (None, Some(Value::Array(values))) => Some(values),
        _ => None,
    }
}

fn with_limits(kind: &str, map: &Map<String, Value>) -> String {
    let mut text = match kind {
        "integer" => "an integer".to_owned(),
        "array" => "an array".to_owned(),
        "object" => return object(map),
        "boolean" => return "true or false".to_owned(),
        "null" => return "null".to_owned(),
        other => format!("a {}", shorten(other)),
    };
    if matches!(kind, "integer" | "number") {
        match (map.get("minimum"), map.get("maximum")) {
            (Some(least), Some(most)) => _ = write!(text, " from {least} to {most}"),
            (Some(least), None) => _ = write!(text, " of at least {least}"),
            (None, Some(most)) => _ = write!(text, " of at most {most}"),
            (None, None) => {}
        }
    }
    text
}

/// Describes an object by its members with only one allowed value, if it has any.
fn object(map: &Map<String, Value>) -> String {
    let properties = map.get("properties").and_then(Value::as_object);
    let tags = properties
        .into_iter()
        .flatten()
        .filter_map(|(name, property)| {
            let tag = listed(property.as_object()?)?;
            (tag.len() == 1)
                .then(|| format!("{} {}", quote_text(name), list(tag.iter().map(literal))))
        });
    let tags: Vec<String> = tags.take(2).collect();
    if !tags.is_empty() {
        return format!("an object with {}", tags.join(" and "));
    }
    let required: Vec<_> = map
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .collect();
    if required.is_empty() {
        return "an object".to_owned();
    }
    format!("an object with {}", list(required.into_iter().map(quote)))
}

pub(crate) fn either(forms: impl Iterator<Item = String>) -> String {
    let mut texts: Vec<String> = Vec::new();
    for form in forms.take(MAX_LISTED) {
        if !texts.contains(&form) {
            texts.push(form);
        }
    }
    texts.join(" or ")
}

/// A value of a schema as JSON, which the reader can copy.
pub(crate) fn literal(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => shorten(&value.to_string()),
        scalar => quote(scalar),
    }
}

/// Describes a value for a message: scalars are quoted, shortened if they are long, other values
/// are described.
pub(crate) fn brief(value: &Value) -> String {
    match value {
        Value::Array(items) if items.is_empty() => "an empty array".to_owned(),
        Value::Array(items) => format!("an array of length {}", items.len()),
        Value::Object(map) if map.is_empty() => "an empty object".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) => format!("the string {}", quote_text(text)),
        Value::Number(number) => format!("the number {number}"),
        scalar => scalar.to_string(),
    }
}

/// A scalar as JSON, shortened; other values are described.
pub(crate) fn quote(value: &Value) -> String {
    match value {
        Value::String(text) => quote_text(text),
        Value::Array(_) | Value::Object(_) => brief(value),
        scalar => scalar.to_string(),
    }
}

/// Returns a text in quotes, shortened if it is long.
#[must_use]
pub fn quote_text(text: &str) -> String {
    let short: String = text.chars().take(MAX_QUOTED).collect();
    let mut quoted = Value::String(short.clone()).to_string();
    if short.len() < text.len() {
        quoted.push('…');
    }
    quoted
}

pub(crate) fn shorten(text: &str) -> String {
    let mut short: String = text.chars().take(2 * MAX_QUOTED).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// Lists items as `a, b, c`, with an ellipsis if there are too many.
pub fn list(items: impl Iterator<Item = String>) -> String {
    let mut items = items.peekable();
    let mut text = String::new();
    for (index, item) in items.by_ref().take(MAX_LISTED).enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        text.push_str(&item);
    }
    if items.peek().is_some() {
        text.push_str(", …");
    }
    text
}
