//! References within a schema, and changing a root that they lead to.

use serde_json::{Map, Value, json};

use crate::{full::uri::percent_decode, infer::portable::for_each_subschema};

/// The schema that a reference within the document leads to.
pub(crate) fn target<'a>(reference: &Value, root: &'a Value) -> Option<&'a Value> {
    let pointer = reference.as_str()?.strip_prefix('#')?;
    root.pointer(&percent_decode(pointer))
}

/// Whether a reference leads to a part of the root that merging changes.
fn refers_into_root(root: &Map<String, Value>) -> bool {
    let mut found = false;
    let mut schema = Value::Object(root.clone());
    visit(&mut schema, &mut |map| {
        found |= map.get("$ref").is_some_and(leads_into_root);
    });
    found
}

fn leads_into_root(reference: &Value) -> bool {
    let is_definition =
        |pointer: &str| pointer.starts_with("/$defs/") || pointer.starts_with("/definitions/");
    let pointer = reference.as_str().and_then(|it| it.strip_prefix('#'));
    pointer.is_some_and(|it| (it.is_empty() || it.starts_with('/')) && !is_definition(it))
}

/// Prepares a root for changes: if references lead to it, the whole schema is put into the definitions, and they lead there.
pub(crate) fn keep_root_in_definitions(root: &mut Map<String, Value>) {
    if !refers_into_root(root) {
        return;
    }
    let mut whole = root.clone();
    for keyword in ["$defs", "definitions", "$schema", "$id"] {
        whole.remove(keyword);
    }
    let definitions = root.entry("$defs").or_insert_with(|| json!({}));
    let Value::Object(definitions) = definitions else {
        return;
    };
    let mut name = "root".to_owned();
    while definitions.contains_key(&name) {
        name.push('_');
    }
    let place = format!("#/$defs/{name}");
    definitions.insert(name, Value::Object(whole));
    let mut rest = Value::Object(std::mem::take(root));
    visit(&mut rest, &mut |map| redirect(map, &place));
    if let Value::Object(rest) = rest {
        *root = rest;
    }
}

fn redirect(map: &mut Map<String, Value>, place: &str) {
    let Some(Value::String(reference)) = map.get_mut("$ref") else {
        return;
    };
    if leads_into_root(&Value::String(reference.clone())) {
        reference.replace_range(..1, place);
    }
}

/// Calls `change` for a schema and all schemas in it.
pub(crate) fn visit(schema: &mut Value, change: &mut impl FnMut(&mut Map<String, Value>)) {
    let Value::Object(map) = schema else { return };
    change(map);
    for_each_subschema(map, &mut |subschema| visit(subschema, change));
}
