//! Limits on the size of schemas: they may come from peers, and processing them is recursive.

use std::collections::HashMap;

use serde_json::Value;

use crate::{
    error::{Result, SchemaError},
    full::uri::percent_decode,
};

/// The maximum nesting depth of the JSON of a schema: less than the limit of the JSON parser, and three times the depth
/// of the deepest published schemas.
const MAX_DEPTH: usize = 100;
/// The maximum number of JSON values in a schema. A megabyte of schema has fewer.
const MAX_VALUES: usize = 100_000;
/// The maximum total length of the JSON Pointers of all objects and booleans in a schema, in bytes: each of these may
/// be a schema, which keeps its path.
const MAX_POINTERS: usize = 16 << 20;
/// The maximum number of subschemas that one instance may be checked against, with all references followed. References
/// to references double the work with each step, so a page of schema could keep a processor busy for years.
const MAX_EXPANSION: usize = 1_000_000;
/// The maximum length of a chain of references and subschemas, which bounds the use of the stack.
const MAX_EXPANSION_DEPTH: usize = 500;

/// Refuses schemas that exceed the limits.
pub(crate) fn check(schema: &Value) -> Result<()> {
    Measure::default().of(schema, 0, 0)?;
    if has_reference(schema) {
        let mut expansion = Expansion {
            root: schema,
            sizes: HashMap::new(),
            depth: 0,
            visited: 0,
        };
        if expansion.of(schema) >= MAX_EXPANSION {
            return Err(SchemaError::limit(format!(
                "the schema is too large: its references expand to more than {MAX_EXPANSION} subschemas"
            )));
        }
    }
    Ok(())
}

#[derive(Default)]
struct Measure {
    values: usize,
    pointers: usize,
}

impl Measure {
    /// Adds a value at this depth of the schema, with a pointer of this length.
    fn of(&mut self, value: &Value, depth: usize, pointer: usize) -> Result<()> {
        self.values += 1;
        if value.is_object() || value.is_boolean() {
            self.pointers += pointer;
        }
        if depth > MAX_DEPTH {
            return Err(SchemaError::limit(format!(
                "the schema is nested more than {MAX_DEPTH} levels deep"
            )));
        }
        if self.values > MAX_VALUES {
            return Err(SchemaError::limit(format!(
                "the schema is too large: it has more than {MAX_VALUES} JSON values"
            )));
        }
        if self.pointers > MAX_POINTERS {
            return Err(SchemaError::limit(format!(
                "the names in the schema are too long: the JSON Pointers to its parts exceed {MAX_POINTERS} bytes"
            )));
        }
        match value {
            // A slash and the index of an item take at most 7 bytes.
            Value::Array(items) => items
                .iter()
                .try_for_each(|item| self.of(item, depth + 1, pointer + 7)),
            Value::Object(map) => map.iter().try_for_each(|(name, item)| {
                let escapes = name
                    .bytes()
                    .filter(|byte| matches!(byte, b'~' | b'/'))
                    .count();
                self.of(item, depth + 1, pointer + 1 + name.len() + escapes)
            }),
            _ => Ok(()),
        }
    }
}

fn has_reference(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.contains_key("$ref") || map.values().any(has_reference),
        Value::Array(items) => items.iter().any(has_reference),
        _ => false,
    }
}

struct Expansion<'a> {
    root: &'a Value,
    /// The number of subschemas behind each target of a reference; `None` while it is being counted, since a cycle ends
    /// with the instance.
    sizes: HashMap<&'a str, Option<usize>>,
    depth: usize,
    /// The number of values that were visited: those with several names count once for each.
    visited: usize,
}

impl<'a> Expansion<'a> {
    fn of(&mut self, schema: &'a Value) -> usize {
        self.visited += 1;
        if self.depth > MAX_EXPANSION_DEPTH || self.visited > MAX_EXPANSION {
            return MAX_EXPANSION;
        }
        self.depth += 1;
        let size = match schema {
            Value::Object(map) => map.iter().fold(1, |size: usize, (key, value)| match value {
                Value::String(target) if key == "$ref" => {
                    size.saturating_add(self.of_target(target))
                }
                _ if key == "$defs" || key == "definitions" => size,
                _ => size.saturating_add(self.of(value)),
            }),
            Value::Array(items) => items
                .iter()
                .fold(1, |size: usize, item| size.saturating_add(self.of(item))),
            _ => 1,
        };
        self.depth -= 1;
        size
    }

    fn of_target(&mut self, reference: &'a str) -> usize {
        if let Some(size) = self.sizes.get(reference) {
            return size.unwrap_or(1);
        }
        let root = self.root;
        let Some(target) = reference
            .strip_prefix('#')
            .and_then(|pointer| root.pointer(&percent_decode(pointer)))
        else {
            return 1;
        };
        self.sizes.insert(reference, None);
        let size = self.of(target);
        self.sizes.insert(reference, Some(size));
        size
    }
}
