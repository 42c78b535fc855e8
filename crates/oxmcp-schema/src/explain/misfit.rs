//! Messages for errors in schemas, which often come from another dialect or from memory.

use serde_json::Value;

use crate::{
    explain::{
        expected::{brief, list, quote, quote_text},
        spelling::nearest,
    },
    full::{
        dialect::Dialect,
        failure::Misfit,
        grammar::table::{KINDS, Shape},
    },
};

/// Describes the error in a value of a schema, and the correct form.
pub(crate) fn misfit(misfit: Misfit, value: &Value) -> String {
    let wanted = expected(misfit.dialect, misfit.shape);
    let hint = hint(misfit, value).unwrap_or_default();
    if value.is_string() && is_of_text(misfit.shape) {
        return format!("{} is not accepted; expected {wanted}{hint}", quote(value));
    }
    format!("expected {wanted}, got {}{hint}", brief(value))
}

/// Whether the validity depends on the text of the value.
fn is_of_text(shape: Shape) -> bool {
    use Shape::{Anchor, Id, Kind, Kinds};
    matches!(shape, Kind | Kinds | Id | Anchor)
}

fn expected(dialect: Dialect, shape: Shape) -> String {
    let schema = if dialect.has_boolean_schemas() {
        "a schema (an object, true or false)"
    } else {
        "a schema (an object)"
    };
    let names = if dialect == Dialect::Draft04 {
        "an array of at least one name"
    } else {
        "an array of names"
    };
    match shape {
        Shape::Anything => "anything",
        Shape::Text => "a string",
        Shape::Id => "a URI without a fragment",
        Shape::Anchor => {
            "a name of letters, digits, \"-\", \"_\" and \".\", which begins with a letter"
        }
        Shape::Flag => "true or false",
        Shape::Number => "a number",
        Shape::Positive => "a number of more than 0",
        Shape::Count => "an integer of at least 0",
        Shape::Array => "an array",
        Shape::Kind => return kinds(),
        Shape::Kinds => return format!("{}, or an array of some of them", kinds()),
        Shape::Names => names,
        Shape::NamedNames => "an object of arrays of names",
        Shape::NamedFlags => "an object of true and false",
        Shape::Schema => schema,
        Shape::SchemaOrFlag => "a schema (an object), true or false",
        Shape::Schemas => "an array of at least one schema",
        Shape::SchemaOrSchemas => return format!("{schema}, or an array of at least one schema"),
        Shape::SchemaOrNames => return format!("{schema}, or {names}"),
        Shape::NamedSchemas => "an object of schemas",
        Shape::Dependencies => "an object of schemas and arrays of names",
    }
    .to_owned()
}

fn kinds() -> String {
    let names = KINDS.iter().map(|name| quote_text(name));
    format!("one of {}", list(names))
}

/// The most likely intention.
fn hint(misfit: Misfit, value: &Value) -> Option<String> {
    if let (Shape::Kind | Shape::Kinds, Value::String(name)) = (misfit.shape, value) {
        let meant = nearest(name, KINDS.into_iter())?;
        return Some(format!("; did you mean {}?", quote_text(meant)));
    }
    let hint = match (misfit.keyword?, value) {
        ("required", Value::Bool(_)) => {
            "; put it next to \"properties\", as an array of the required names"
        }
        ("exclusiveMinimum" | "exclusiveMaximum", Value::Bool(_)) => {
            "; in this dialect it is the limit itself (a boolean only in draft-04)"
        }
        ("exclusiveMinimum" | "exclusiveMaximum", Value::Number(_)) => {
            "; in draft-04 it is a boolean, and the limit is in \"minimum\" or \"maximum\""
        }
        ("items", Value::Array(_)) if misfit.shape == Shape::Schema => {
            "; in this dialect, use \"prefixItems\" for one schema per position"
        }
        _ => return None,
    };
    Some(hint.to_owned())
}
