//! Bounds on the size of schemas. Schemas come from peers as well, and the work on them is recursive.

use std::collections::HashMap;

use serde_json::Value;

use crate::{
    error::{Result, SchemaError},
    full::uri::percent_decode,
};

/// How deep the JSON of a schema may nest: less deep than the JSON parser goes, and three times what the deepest
/// published schemas need.
const MAX_DEPTH: usize = 100;
/// How many JSON values a schema may consist of. A megabyte of schema has fewer.
const MAX_VALUES: usize = 100_000;
/// How long the JSON Pointers of all objects and truths in a schema may be together, in bytes: each may be a schema, which
/// keeps the way to it. A megabyte of schema has some.
const MAX_POINTERS: usize = 16 << 20;
/// How many subschemas one instance may be held against, all references followed. References to references double
/// the work with each step, so that a page of schema can keep a processor busy for years.
const MAX_EXPANSION: usize = 1_000_000;
/// How long a chain of references and subschemas may be, for the sake of the stack.
const MAX_EXPANSION_DEPTH: usize = 500;

/// Refuses schemas that cost more than any use of them is worth.
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
                "the schema refers to parts of itself so often that it stands for more than {MAX_EXPANSION} subschemas"
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
    /// Adds a value that is so deep within the schema, with a pointer of this length.
    fn of(&mut self, value: &Value, depth: usize, pointer: usize) -> Result<()> {
        self.values += 1;
        if value.is_object() || value.is_boolean() {
            self.pointers += pointer;
        }
        if depth > MAX_DEPTH {
            return Err(SchemaError::limit(format!(
                "the schema nests deeper than {MAX_DEPTH} levels"
            )));
        }
        if self.values > MAX_VALUES {
            return Err(SchemaError::limit(format!(
                "the schema consists of more than {MAX_VALUES} JSON values"
            )));
        }
        if self.pointers > MAX_POINTERS {
            return Err(SchemaError::limit(format!(
                "the names in the schema are so long that the ways to its parts take more than {MAX_POINTERS} bytes"
            )));
        }
        match value {
            // As long as the numbers of items are, at most.
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
    /// What each target of a reference stands for; none while it is being counted, since a cycle ends with the
    /// instance.
    sizes: HashMap<&'a str, Option<usize>>,
    depth: usize,
    /// How many values were looked at: those that go by several names are, by each.
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
