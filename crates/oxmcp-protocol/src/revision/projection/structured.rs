//! Projection of tool schemas, for revisions in which they must describe objects.

use serde_json::{Value, json};

use crate::values::json::{JsonObject, RawJson};

/// An input schema with `"type": "object"` at its root, which every revision requires. `None` if the schema has it
/// already.
pub(crate) fn input_schema(schema: &RawJson) -> Option<RawJson> {
    if says_object(schema) {
        return None;
    }
    let mut root = match serde_json::from_str(schema.get()) {
        Ok(Value::Object(root)) => root,
        // `true` and `false` are schemas, too: they accept any value and no value.
        Ok(Value::Bool(false)) => JsonObject::from_iter([("not".into(), json!({}))]),
        _ => JsonObject::new(),
    };
    root.insert("type".into(), "object".into());
    Some(Value::Object(root).into())
}

/// An output schema that describes an object, as revisions before 2026-07-28 require. It describes the form in which
/// such a peer receives structured content. `None` if the schema describes an object already.
///
/// Content that is not an object is sent as `{"result": content}`. If the schema allows objects and other values, the
/// output schema describes both.
pub(crate) fn legacy_output_schema(schema: &RawJson) -> Option<RawJson> {
    if says_object(schema) {
        return None;
    }
    let mut root: Value = serde_json::from_str(schema.get()).unwrap_or(Value::Bool(true));
    let dialect = root.as_object_mut().and_then(|root| root.remove("$schema"));
    let mut wrapped = if may_be_object(&root) {
        move_references(&mut root, "#/$defs/content");
        json!({
            "type": "object",
            "anyOf": [
                {"$ref": "#/$defs/content"},
                {"properties": {"result": {"$ref": "#/$defs/content"}}, "required": ["result"]},
            ],
            "$defs": {"content": root},
        })
    } else {
        move_references(&mut root, "#/properties/result");
        json!({"type": "object", "properties": {"result": root}, "required": ["result"]})
    };
    if let (Some(dialect), Some(wrapped)) = (dialect, wrapped.as_object_mut()) {
        wrapped.insert("$schema".into(), dialect);
    }
    Some(wrapped.into())
}

/// Whether the root has `"type": "object"`, found without building the schema.
fn says_object(schema: &RawJson) -> bool {
    #[derive(serde::Deserialize)]
    struct Root<'a> {
        #[serde(borrow, default)]
        r#type: Option<&'a serde_json::value::RawValue>,
    }

    serde_json::from_str::<Root<'_>>(schema.get())
        .is_ok_and(|root| root.r#type.is_some_and(|kind| kind.get() == r#""object""#))
}

fn may_be_object(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        _ => true,
    }
}

/// Adjusts local references, which begin at the root, after the schema was moved below another root.
fn move_references(schema: &mut Value, to: &str) {
    match schema {
        Value::Object(object) => {
            // A schema with its own `$id` is the root of the references within it.
            if object.contains_key("$id") {
                return;
            }
            for (key, value) in object {
                match (&**key, value) {
                    ("$ref" | "$dynamicRef", Value::String(reference)) => {
                        if reference == "#" || reference.starts_with("#/") {
                            reference.replace_range(..1, to);
                        }
                    }
                    ("const" | "enum" | "default" | "examples", _) => {}
                    (_, value) => move_references(value, to),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| move_references(item, to)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn legacy(schema: Value) -> Value {
        let schema = RawJson::from(schema);
        let schema = legacy_output_schema(&schema).unwrap_or(schema);
        serde_json::from_str(schema.get()).unwrap()
    }

    fn accepts(schema: &Value, instance: &Value) -> bool {
        jsonschema::validator_for(schema)
            .unwrap()
            .is_valid(instance)
    }

    #[test]
    fn object_schemas_stay_and_other_schemas_are_wrapped() {
        let object = json!({"type": "object", "properties": {"a": {}}});
        assert_eq!(legacy(object.clone()), object);
        let list = json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "array", "items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "number"}}});
        let wrapped = legacy(list);
        assert_eq!(
            wrapped["$schema"],
            "https://json-schema.org/draft/2020-12/schema"
        );
        assert_eq!(wrapped["required"], json!(["result"]));
        assert!(accepts(&wrapped, &json!({"result": [1, 2]})));
        assert!(!accepts(&wrapped, &json!({"result": ["1"]})));
    }

    #[test]
    fn schema_of_possible_object_describes_both_shapes() {
        let tree = json!({"anyOf": [{"type": "null"}, {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]}]});
        let wrapped = legacy(tree);
        assert_eq!(wrapped["type"], "object");
        assert!(accepts(&wrapped, &json!({"result": null})));
        assert!(accepts(&wrapped, &json!({"next": {"next": null}})));
        assert!(!accepts(&wrapped, &json!({"next": 3})));
        assert!(!accepts(&wrapped, &json!(null)));
    }

    #[test]
    fn input_schema_declares_type_object() {
        let fixed =
            |schema: Value| input_schema(&schema.into()).map(|schema| schema.get().to_owned());
        assert_eq!(fixed(json!({"type": "object"})), None);
        assert_eq!(fixed(json!({})).as_deref(), Some(r#"{"type":"object"}"#));
        assert_eq!(fixed(json!(true)).as_deref(), Some(r#"{"type":"object"}"#));
    }
}
