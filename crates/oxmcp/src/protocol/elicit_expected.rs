//! What the fields of a form take, in words.
//!
//! See [requested schema](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#requested-schema).

use std::fmt::Write as _;

use serde_json::Value;

use super::{EnumOptions, NumberKind, PrimitiveSchema, StringSchema};

/// More than that helps nobody: the first few say what kind of mistake it is.
pub(super) const SHOWN: usize = 10;

/// What an answer can hold at all.
pub(super) const PRIMITIVE: &str = "a string, a number, true or false, or a list of strings";

/// What a field takes, for people and models to read.
pub(super) fn expected(field: &PrimitiveSchema) -> String {
    match field {
        PrimitiveSchema::String(field) => expected_text(field),
        PrimitiveSchema::Number(field) => {
            let kind = match field.kind {
                NumberKind::Number => "a number",
                NumberKind::Integer => "a whole number",
            };
            format!("{kind}{}", bounds(field.minimum, field.maximum, ""))
        }
        PrimitiveSchema::Boolean(_) => "true or false".into(),
        PrimitiveSchema::SingleSelect(field) => format!("one of {}", listed(&field.options)),
        PrimitiveSchema::MultiSelect(field) => {
            let count = bounds(field.min_items, field.max_items, " entries");
            format!("a list{count}, each one of {}", listed(&field.options))
        }
        PrimitiveSchema::Unknown(_) => PRIMITIVE.into(),
    }
}

fn expected_text(field: &StringSchema) -> String {
    let kind = field.format.as_ref().and_then(|format| format.expected());
    let length = bounds(field.min_length, field.max_length, " characters");
    match kind {
        Some(kind) if length.is_empty() => kind.into(),
        Some(kind) => format!("{kind},{length}"),
        None => format!("a string{length}"),
    }
}

fn bounds<T: ToString>(least: Option<T>, most: Option<T>, unit: &str) -> String {
    match (
        least.map(|it| it.to_string()),
        most.map(|it| it.to_string()),
    ) {
        (Some(least), Some(most)) if least == most => format!(" of exactly {least}{unit}"),
        (Some(least), Some(most)) => format!(" of {least} to {most}{unit}"),
        (Some(least), None) => format!(" of at least {least}{unit}"),
        (None, Some(most)) => format!(" of at most {most}{unit}"),
        (None, None) => String::new(),
    }
}

fn listed(options: &EnumOptions) -> String {
    let mut text = String::new();
    for (index, option) in options.values().take(SHOWN + 1).enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        // Writing to a string cannot fail.
        let _ = match index {
            SHOWN => write!(text, "{separator}…"),
            _ => write!(text, "{separator}{}", quoted(option)),
        };
    }
    text
}

pub(super) fn got(value: &Value) -> String {
    match value {
        Value::String(text) => format!("the string {}", quoted(text)),
        Value::Number(number) => format!("the number {number}"),
        Value::Bool(value) => value.to_string(),
        Value::Array(_) => format!("the list {}", cut(&value.to_string())),
        Value::Null => "null".into(),
        Value::Object(_) => "an object".into(),
    }
}

fn quoted(text: &str) -> String {
    cut(&format!("{text:?}"))
}

/// Texts of others can be of any length.
fn cut(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        None => text.into(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}
