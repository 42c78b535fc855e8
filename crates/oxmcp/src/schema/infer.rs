//! From a type to a schema.

use schemars::generate::{Contract, SchemaSettings};
use serde_json::{Map, Value};

use super::{JsonSchema, order, portable};

/// What a schema is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// What is read into the type.
    Input,
    /// What the type writes.
    Output,
}

/// The portable schema of `T`, with marks.
pub(super) fn infer<T: JsonSchema + ?Sized>(direction: Direction) -> Value {
    let generator = settings(direction).into_generator();
    let schema = order::with_declared_order(|| generator.into_root_schema_for::<T>());
    finish(schema.to_value(), &T::schema_name(), direction)
}

/// What is done to the schema of every type: once for all, since this is compiled for each tool otherwise.
fn finish(mut schema: Value, name: &str, direction: Direction) -> Value {
    if let Value::Object(root) = &mut schema {
        // A name of Rust tells a model nothing; a title that the author has chosen does.
        if root.get("title").and_then(Value::as_str) == Some(name) {
            root.remove("title");
        }
        if direction == Direction::Input {
            arguments(root);
        }
    }
    portable::simplify(&mut schema);
    if let Value::Object(root) = &mut schema {
        close_root(root, direction);
    }
    schema
}

fn settings(direction: Direction) -> SchemaSettings {
    SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
        settings.contract = match direction {
            Direction::Input => Contract::Deserialize,
            Direction::Output => Contract::Serialize,
        };
    })
}

/// Arguments are an object, always. Types that take nothing (`()`), nothing or an object (`Option<T>`), or anything
/// (`serde_json::Value`) can be read from one.
fn arguments(root: &mut Map<String, Value>) {
    if root.get("type").is_some_and(|kind| kind == "null") {
        root.insert("type".to_owned(), "object".into());
    }
    portable::forbid_null(root);
}

/// Says that the root is an object where it is in every form of it, and adds the `properties` that some clients insist
/// on in an input.
fn close_root(root: &mut Map<String, Value>, direction: Direction) {
    let is_input = direction == Direction::Input;
    let is_object = match root.get("anyOf").and_then(Value::as_array) {
        Some(forms) => forms.iter().all(|form| form["type"] == "object"),
        None => is_input && !root.contains_key("$ref"),
    };
    if is_object && !root.contains_key("type") {
        root.insert("type".to_owned(), "object".into());
    }
    if is_input
        && root.get("type").is_some_and(|kind| kind == "object")
        && !root.contains_key("anyOf")
    {
        root.entry("properties")
            .or_insert_with(|| Value::Object(Map::new()));
    }
}
