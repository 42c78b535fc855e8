//! Trait [`JsonSchema`], and the schema of a type.

use schemars::generate::{Contract, SchemaSettings};
use serde_json::{Map, Value};

use crate::infer::{order, portable};

/// What a schema is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// What is read into the type.
    Input,
    /// What the type writes.
    Output,
}

/// The portable schema of `T`, with marks.
pub(crate) fn infer<T: JsonSchema + ?Sized>(direction: Direction) -> Value {
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

/// A type that has a JSON Schema, so that it can be the input or the output of a tool.
///
/// Derive it. Doc comments become descriptions, `#[serde(..)]` attributes are followed, and what a schema can say
/// beyond that is said with [`#[schemars(..)]`](https://graham.cool/schemars/deriving/attributes/):
///
/// ```
/// /// What is to be counted.
/// #[derive(serde::Deserialize, oxmcp_schema::JsonSchema)]
/// struct Count {
///     /// the words to look for
///     words: Vec<String>,
///     /// how many results are enough
///     #[schemars(range(min = 1, max = 100))]
///     limit: Option<u32>,
/// }
///
/// let schema = oxmcp_schema::Schema::of::<Count>().to_value();
/// assert_eq!(schema["properties"]["limit"]["minimum"], 1);
/// assert_eq!(schema["required"], serde_json::json!(["words"]));
/// ```
///
/// The crate that derives needs no dependency but oxmcp. One that sees oxmcp under another path says so:
/// `#[oxmcp(crate = "my_facade::oxmcp")]`. Types that derive or implement `JsonSchema` of schemars 1 have this trait
/// as well.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no JSON Schema",
    label = "this type needs a JSON Schema",
    note = "add `#[derive(oxmcp::JsonSchema)]` to `{Self}`, and `#[derive(serde::Deserialize)]` if it is an input",
    note = "for a type of another crate: a feature of schemars 1 may have it, or `#[schemars(with = \"String\")]` on the field says what it looks like"
)]
pub trait JsonSchema: schemars::JsonSchema {}

#[diagnostic::do_not_recommend]
impl<T: schemars::JsonSchema + ?Sized> JsonSchema for T {}
