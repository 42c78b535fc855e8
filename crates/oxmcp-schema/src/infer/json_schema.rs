//! Trait [`JsonSchema`], and the schema of a type.

use schemars::generate::{Contract, SchemaSettings};
use serde_json::{Map, Value, json};

use crate::infer::{order, portable, references::keep_root_in_definitions};

/// The use of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// JSON that is deserialized into the type.
    Input,
    /// JSON that the type serializes to.
    Output,
}

/// The portable schema of `T`, with the marks of inference.
pub(crate) fn infer<T: JsonSchema + ?Sized>(direction: Direction) -> Value {
    let generator = settings(direction).into_generator();
    let schema = order::with_declared_order(|| generator.into_root_schema_for::<T>());
    finish(schema.to_value(), &T::schema_name(), direction)
}

/// Postprocesses the schema of a type. It is not generic, since otherwise it would be compiled again for each tool.
fn finish(mut schema: Value, name: &str, direction: Direction) -> Value {
    if let Value::Object(root) = &mut schema {
        // The name of a Rust type has no meaning for a model; a title that the author has chosen does.
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

/// Restricts a schema to objects, since arguments are always an object. Types that read nothing (`()`), nothing or an
/// object (`Option<T>`), or any value (`serde_json::Value`) can be read from one.
fn arguments(root: &mut Map<String, Value>) {
    if root.get("type").is_some_and(|kind| kind == "null") {
        root.insert("type".to_owned(), "object".into());
    }
    portable::forbid_null(root);
    name_unit_variants(root);
}

/// Adds to an enum of named variants the forms `{"Variant": null}` of those without data, which serde reads as well as the
/// plain name: arguments are an object, and never a name.
fn name_unit_variants(root: &mut Map<String, Value>) {
    let Some(Value::Array(forms)) = root.get("oneOf").cloned() else {
        return;
    };
    let is_named = |form: &Value| {
        let is_closed = form.get("additionalProperties") == Some(&Value::Bool(false));
        let required = form.get("required").and_then(Value::as_array);
        let properties = form.get("properties").and_then(Value::as_object);
        is_closed && required.map(Vec::len) == Some(1) && properties.map(Map::len) == Some(1)
    };
    let names = |form: &Value| match (form.get("enum"), form.get("const")) {
        (Some(Value::Array(names)), _) => names.clone(),
        (_, Some(name)) => vec![name.clone()],
        _ => Vec::new(),
    };
    let (named, plain): (Vec<_>, Vec<_>) = forms.iter().partition(|form| is_named(form));
    let is_plain = |form: &&Value| {
        let names = names(form);
        !names.is_empty() && names.iter().all(Value::is_string)
    };
    if named.is_empty() || plain.is_empty() || !plain.iter().all(is_plain) {
        return;
    }
    // A reference to the root means the whole enum, plain names included.
    keep_root_in_definitions(root);
    let forms = root.get("oneOf").and_then(Value::as_array);
    let forms = forms.into_iter().flatten().flat_map(|form| {
        if is_named(form) {
            return vec![form.clone()];
        }
        let names = names(form).into_iter();
        let forms = names.filter_map(|name| {
            let name = name.as_str()?;
            let mut variant = json!({
                "type": "object",
                "properties": {name: {"type": "null"}},
                "required": [name],
                "additionalProperties": false,
            });
            if let (Some(text), Value::Object(variant)) = (form.get("description"), &mut variant) {
                variant.insert("description".to_owned(), text.clone());
            }
            Some(variant)
        });
        forms.collect()
    });
    let forms = forms.collect();
    root.insert("oneOf".to_owned(), Value::Array(forms));
}

/// Sets the type of the root to `object` if all of its forms are objects, and adds the `properties` that some clients
/// require in an input.
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
/// The trait is meant to be derived. Doc comments become descriptions, `#[serde(..)]` attributes are respected, and
/// further keywords are added by [`#[schemars(..)]`](https://graham.cool/schemars/deriving/attributes/):
///
/// ```
/// /// The words to count.
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
/// A crate that uses the derive needs no dependency but oxmcp. If it imports oxmcp under another path, it must set
/// `#[oxmcp(crate = "my_facade::oxmcp")]`. Types that derive or implement `JsonSchema` of schemars 1 have this trait
/// as well.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no JSON Schema",
    label = "this type needs a JSON Schema",
    note = "add `#[derive(oxmcp::JsonSchema)]` to `{Self}`, and `#[derive(serde::Deserialize)]` if it is an input",
    note = "for state that handlers share, write `#[state]` before the parameter",
    note = "for a type from another crate, enable the Cargo feature of oxmcp with the name of that crate, such as `chrono` or `uuid`, or give the field a schema with `#[schemars(with = \"String\")]`"
)]
pub trait JsonSchema: schemars::JsonSchema {}

#[diagnostic::do_not_recommend]
impl<T: schemars::JsonSchema + ?Sized> JsonSchema for T {}
