//! A schema as the schema of a member.

use serde_json::{Map, Value, json};

/// The schema of `{member: ..}` where the member has this schema. References stay right.
pub(super) fn within_object(schema: &Value, member: &str) -> Value {
    let mut inner = schema.clone();
    let dialect = inner.as_object_mut().and_then(|map| map.remove("$schema"));
    let has_own_base = inner.get("$id").is_some();
    if !has_own_base {
        let token = member.replace('~', "~0").replace('/', "~1");
        rebase(&mut inner, &format!("/properties/{token}"));
    }
    let mut outer = Map::new();
    if let Some(dialect) = dialect {
        outer.insert("$schema".to_owned(), dialect);
    }
    outer.insert("type".to_owned(), "object".into());
    outer.insert("properties".to_owned(), json!({member: inner}));
    outer.insert("required".to_owned(), json!([member]));
    Value::Object(outer)
}

/// References count from the root of the document, which is now further up. Any member may hold a schema, whatever the
/// dialect, except those that hold data.
fn rebase(schema: &mut Value, prefix: &str) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(|item| rebase(item, prefix)),
        Value::Object(map) => {
            for (keyword, value) in map {
                match (keyword.as_str(), value) {
                    ("enum" | "const" | "default" | "examples", _) => {}
                    ("$ref", Value::String(reference)) => rebase_reference(reference, prefix),
                    (
                        "properties" | "patternProperties" | "$defs" | "definitions",
                        Value::Object(named),
                    ) => {
                        named.values_mut().for_each(|schema| rebase(schema, prefix));
                    }
                    (_, value) => rebase(value, prefix),
                }
            }
        }
        _ => {}
    }
}

fn rebase_reference(reference: &mut String, prefix: &str) {
    let pointer = reference.strip_prefix('#');
    if let Some(pointer) = pointer.filter(|pointer| pointer.is_empty() || pointer.starts_with('/'))
    {
        *reference = format!("#{prefix}{pointer}");
    }
}
