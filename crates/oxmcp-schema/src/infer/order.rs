//! Order of the members of a written schema.
//!
//! Maps of JSON values are sorted by name, and models read a schema from the top: the first property should be the
//! one that the author has declared first. So the derive numbers the fields, inference keeps the numbers in the
//! schema under a key that no JSON Schema has, and the writer sorts by them and leaves them out.

use std::{cell::Cell, collections::HashMap};

use oxmcp_json::Text;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// The key for the index of a property among its siblings.
pub(crate) const ORDER: &str = "\0order";
/// The key that marks a property for which null is tolerated but not advertised.
pub(crate) const NULLABLE: &str = "\0nullable";
/// The key for a format that is not advertised, since it is specific to one library.
pub(crate) const FORMAT: &str = "\0format";

thread_local! {
    /// Whether this thread is inferring schemas: other users of schemars on the same types see no marks.
    static INFERRING: Cell<bool> = const { Cell::new(false) };
}

/// Runs `infer` with numbering of fields.
pub(crate) fn with_declared_order<T>(infer: impl FnOnce() -> T) -> T {
    struct Reset(bool);
    impl Drop for Reset {
        fn drop(&mut self) {
            INFERRING.set(self.0);
        }
    }
    let _reset = Reset(INFERRING.replace(true));
    infer()
}

/// Called by derived code for each field: marks its schema as that of property number `INDEX`.
pub fn declared<const INDEX: usize>(schema: &mut schemars::Schema) {
    if INFERRING.get() {
        schema.insert(ORDER.to_owned(), INDEX.into());
    }
}

/// Numbers the properties of a schema in the order of its text.
pub(crate) fn number_as_written(schema: &mut Value, text: Text<'_>) {
    if let Value::Array(items) = schema {
        for (item, text) in items.iter_mut().zip(text.items()) {
            number_as_written(item, text);
        }
        return;
    }
    let Value::Object(map) = schema else { return };
    for (keyword, text) in text.members() {
        let keyword = keyword.as_str().unwrap_or_default();
        match (map.get_mut(&*keyword), &*keyword) {
            // These hold values, not schemas.
            (None, _) | (_, "enum" | "const" | "default" | "examples") => {}
            (
                Some(Value::Object(named)),
                "properties" | "patternProperties" | "$defs" | "definitions",
            ) => {
                for (index, (name, text)) in text.members().enumerate() {
                    let name = name.as_str().unwrap_or_default();
                    let Some(schema) = named.get_mut(&*name) else {
                        continue;
                    };
                    number_as_written(schema, text);
                    if let (Value::Object(schema), "properties") = (schema, &*keyword) {
                        schema.insert(ORDER.to_owned(), index.into());
                    }
                }
            }
            (Some(value), _) => number_as_written(value, text),
        }
    }
}

/// Writes a schema as JSON, without the marks.
pub(crate) fn write(schema: &Value) -> String {
    let ordered = Ordered::schema(schema);
    serde_json::to_string(&ordered).expect("a JSON value is always JSON")
}

/// The schema without the marks.
pub(crate) fn without_marks(schema: &Value) -> Value {
    match schema {
        Value::Array(items) => items.iter().map(without_marks).collect(),
        Value::Object(map) => {
            let members = map.iter().filter(|(key, _)| !is_mark(key));
            members
                .map(|(key, value)| (key.clone(), without_marks(value)))
                .collect()
        }
        scalar => scalar.clone(),
    }
}

#[derive(Clone, Copy)]
struct Ordered<'a> {
    value: &'a Value,
    place: SchemaPart<'a>,
}

#[derive(Clone, Copy)]
enum SchemaPart<'a> {
    Schema,
    /// The properties of an object, and the value of its `required`.
    Properties(Option<&'a Value>),
}

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.value {
            Value::Object(map) => self.write_map(map, serializer),
            Value::Array(items) => serializer.collect_seq(items.iter().map(Ordered::schema)),
            scalar => scalar.serialize(serializer),
        }
    }
}

impl<'a> Ordered<'a> {
    fn schema(value: &'a Value) -> Self {
        Self {
            value,
            place: SchemaPart::Schema,
        }
    }

    fn write_map<S: Serializer>(
        &self,
        map: &Map<String, Value>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        if let SchemaPart::Properties(required) = self.place {
            return serializer.collect_map(
                in_order(map, required)
                    .into_iter()
                    .map(|(name, value)| (name, Ordered::schema(value))),
            );
        }
        let mut keywords: Vec<_> = map.iter().filter(|(key, _)| !is_mark(key)).collect();
        keywords.sort_by_key(|(keyword, _)| rank(keyword));
        serializer.collect_map(keywords.into_iter().map(|(keyword, value)| {
            let place = if keyword == "properties" {
                SchemaPart::Properties(map.get("required"))
            } else {
                SchemaPart::Schema
            };
            (keyword, Ordered { value, place })
        }))
    }
}

pub(crate) fn is_mark(key: &str) -> bool {
    matches!(key, ORDER | NULLABLE | FORMAT)
}

/// The properties in the order of their declaration. The tag of an enum, which is not a field, comes first, and
/// properties of unknown position come last.
pub(crate) fn in_order<'a>(
    properties: &'a Map<String, Value>,
    required: Option<&Value>,
) -> Vec<(&'a String, &'a Value)> {
    let required = required.and_then(Value::as_array).into_iter().flatten();
    let required = required.filter_map(Value::as_str).zip(0_u64..);
    // If a name occurs twice, its first position counts.
    let required: HashMap<_, _> = required.collect::<Vec<_>>().into_iter().rev().collect();
    let mut properties: Vec<_> = properties.iter().collect();
    properties.sort_by_cached_key(|(name, property)| {
        match property.get(ORDER).and_then(Value::as_u64) {
            Some(index) => (1, index),
            None => match required.get(name.as_str()) {
                Some(index) => (0, *index),
                None => (2, 0),
            },
        }
    });
    properties
}

/// The names of the properties of an object schema, in the order of their declaration.
pub(crate) fn property_names(schema: &Value) -> Vec<&str> {
    let Some(Value::Object(properties)) = schema.get("properties") else {
        return Vec::new();
    };
    let properties = in_order(properties, schema.get("required"));
    properties
        .into_iter()
        .map(|(name, _)| name.as_str())
        .collect()
}

/// The position of a keyword: the most important ones for readers come first.
fn rank(keyword: &str) -> u8 {
    match keyword {
        "$schema" => 0,
        "type" => 1,
        "title" => 2,
        "description" => 3,
        "$defs" | "definitions" => 5,
        _ => 4,
    }
}
