//! Listed form of a schema: it accepts what the schema accepts, and has the shape that model APIs require.
//!
//! The root is a plain object with `properties`: forms at the root (`anyOf`, `oneOf`, `allOf`) are merged by
//! [`merge`](super::merge). Each array has `items`. The listed form may accept more than the schema, which validates.

use serde_json::{Map, Value, json};

use crate::{
    hosts::merge::{Form, any_of},
    infer::references::{keep_root_in_definitions, target, visit},
};

/// The keywords that APIs refuse at the root. Their content is merged into the other keywords.
pub(crate) const REFUSED_AT_ROOT: [&str; 6] = ["anyOf", "oneOf", "allOf", "not", "enum", "const"];

/// The listed form of a schema. `None` if the schema has this form already.
pub(crate) fn listed(schema: &Value) -> Option<Value> {
    let mut listed = schema.clone();
    if let Value::Object(root) = &mut listed
        && root.get("type").is_some_and(|kind| kind == "object")
    {
        merge_root(root);
        root.entry("properties").or_insert_with(|| json!({}));
    }
    give_items(&mut listed);
    (listed != *schema).then_some(listed)
}

fn merge_root(root: &mut Map<String, Value>) {
    let merged = ["$ref", "unevaluatedProperties"];
    let mut merged = merged.iter().chain(&REFUSED_AT_ROOT);
    if !merged.any(|keyword| root.contains_key(*keyword)) {
        return;
    }
    let mut prepared = root.clone();
    keep_root_in_definitions(&mut prepared);
    let whole = Value::Object(prepared.clone());
    let Some(form) = Form::read(&whole, &whole) else {
        return;
    };
    *root = prepared;
    for keyword in REFUSED_AT_ROOT {
        root.remove(keyword);
    }
    // A reference that leads out of the schema was not read.
    if root
        .get("$ref")
        .is_some_and(|it| target(it, &whole).is_some())
    {
        root.remove("$ref");
    }
    root.remove("unevaluatedProperties");
    form.write(root);
}

/// Gives each array `items`. For a tuple, `items` covers all positions, for hosts that do not know `prefixItems`.
fn give_items(schema: &mut Value) {
    visit(schema, &mut |map| {
        let is_array = map.get("type").is_some_and(|kind| kind == "array");
        let items = match (map.get("prefixItems"), map.get("items")) {
            (Some(Value::Array(first)), None | Some(Value::Bool(false))) => {
                let most = map.get("maxItems").and_then(Value::as_u64);
                let is_closed =
                    map.contains_key("items") || most.is_some_and(|it| it <= first.len() as u64);
                if is_closed {
                    let most = first.len();
                    let items = any_of(first.iter().map(|it| (None, it)));
                    map.entry("maxItems").or_insert(most.into());
                    items
                } else {
                    json!({})
                }
            }
            (None, None) if is_array => json!({}),
            (None, Some(Value::Bool(true))) => json!({}),
            _ => return,
        };
        map.insert("items".to_owned(), items);
    });
}
