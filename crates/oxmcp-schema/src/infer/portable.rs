//! Simplifier of inferred schemas: to the part of JSON Schema that clients and models understand everywhere.
//!
//! Many of them have problems with `format`s outside of the specification, `type` arrays, `const`, `oneOf` and schemas
//! that are `true`. The rewritten schema has the same meaning, with one intended exception: an optional property is not
//! advertised as nullable, though null is still accepted for it. Models that send null for an absent value are
//! accepted, and models that see null in a schema tend to send the string "null".

use serde_json::{Map, Value, json};

use crate::infer::order::{FORMAT, NULLABLE};

/// The formats of the specification; all others are specific to one language or tool.
pub(crate) const FORMATS: [&str; 19] = [
    "date-time",
    "date",
    "time",
    "duration",
    "email",
    "idn-email",
    "hostname",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "iri",
    "iri-reference",
    "uuid",
    "uri-template",
    "json-pointer",
    "relative-json-pointer",
    "regex",
];

/// Simplifies a schema and all nested schemas.
pub(crate) fn simplify(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    if is_nullable(map) {
        separate_null(map);
    }
    separate_types(map);
    drop_foreign_format(map);
    if let Some(value) = map.remove("const") {
        map.insert("enum".to_owned(), json!([value]));
    }
    if !map.contains_key("anyOf")
        && let Some(forms) = map.remove("oneOf")
    {
        map.insert("anyOf".to_owned(), forms);
    }
    merge_names(map);
    forbid_null_in_optional_properties(map);
    for_each_subschema(map, &mut |subschema| {
        spell_out(subschema);
        simplify(subschema);
    });
}

/// Calls `visit` for each direct subschema of a schema.
pub(crate) fn for_each_subschema(map: &mut Map<String, Value>, visit: &mut impl FnMut(&mut Value)) {
    for (keyword, value) in map.iter_mut() {
        match (keyword.as_str(), value) {
            (
                "properties" | "patternProperties" | "$defs" | "definitions",
                Value::Object(schemas),
            ) => {
                schemas.values_mut().for_each(&mut *visit);
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems" | "items", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(&mut *visit);
            }
            ("items" | "not" | "if" | "then" | "else" | "contains" | "propertyNames", schema)
            // `additionalProperties: true` is understood by all clients.
            | ("additionalProperties" | "unevaluatedProperties", schema @ Value::Object(_)) => {
                visit(schema);
            }
            _ => {}
        }
    }
}

/// Writes boolean schemas as objects, which some clients require.
fn spell_out(schema: &mut Value) {
    match schema {
        Value::Bool(true) => *schema = json!({}),
        Value::Bool(false) => *schema = json!({"not": {}}),
        _ => {}
    }
}

fn drop_foreign_format(map: &mut Map<String, Value>) {
    let format = map.get("format").and_then(Value::as_str);
    if format.is_some_and(|format| !FORMATS.contains(&format))
        && let Some(format) = map.remove("format")
    {
        // The messages about values still name it.
        map.insert(FORMAT.to_owned(), format);
    }
}

fn forbid_null_in_optional_properties(map: &mut Map<String, Value>) {
    let required: Vec<String> = match map.get("required") {
        Some(Value::Array(names)) => names
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        _ => Vec::new(),
    };
    let Some(Value::Object(properties)) = map.get_mut("properties") else {
        return;
    };
    for (name, property) in properties {
        if let Value::Object(property) = property
            && !required.contains(name)
            && forbid_null(property)
        {
            property.insert(NULLABLE.to_owned(), true.into());
        }
    }
}

/// Removes null from the values that a schema accepts. Returns `false` if it did not accept null.
pub(crate) fn forbid_null(map: &mut Map<String, Value>) -> bool {
    if !is_nullable(map) {
        return false;
    }
    if map.get("default").is_some_and(Value::is_null) {
        map.remove("default");
    }
    if let Some(Value::Array(types)) = map.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            map.insert("type".to_owned(), only);
        }
        if let Some(Value::Array(values)) = map.get_mut("enum") {
            values.retain(|value| !value.is_null());
        }
        return true;
    }
    for keyword in ["anyOf", "oneOf"] {
        let Some(Value::Array(forms)) = map.get_mut(keyword) else {
            continue;
        };
        forms.retain(|form| !is_null(form));
        if let [Value::Object(only)] = forms.as_slice() {
            let only = only.clone();
            map.remove(keyword);
            for (key, value) in only {
                // Keywords next to the form belong to the field, and are more specific than those of the type.
                map.entry(key).or_insert(value);
            }
        }
    }
    true
}

/// Whether a schema accepts null and other values.
fn is_nullable(map: &Map<String, Value>) -> bool {
    let types = map.get("type").and_then(Value::as_array);
    let in_types =
        types.is_some_and(|types| types.len() > 1 && types.iter().any(|name| name == "null"));
    in_types
        || ["anyOf", "oneOf"].into_iter().any(|keyword| {
            let forms = map.get(keyword).and_then(Value::as_array);
            forms.is_some_and(|forms| forms.len() > 1 && forms.iter().any(is_null))
        })
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").is_some_and(|name| name == "null")
}

/// Splits `type: [T, "null"]` of a required value into two forms.
fn separate_null(map: &mut Map<String, Value>) {
    if !map.get("type").is_some_and(Value::is_array) {
        return;
    }
    forbid_null(map);
    let mut form = Map::new();
    let assertions: Vec<String> = map
        .keys()
        .filter(|key| !is_annotation(key))
        .cloned()
        .collect();
    for keyword in assertions {
        if let Some(value) = map.remove(&keyword) {
            form.insert(keyword, value);
        }
    }
    map.insert("anyOf".to_owned(), json!([form, {"type": "null"}]));
}

/// Splits `type: [T, U]` into a form for each type, with the keywords for that type.
fn separate_types(map: &mut Map<String, Value>) {
    if map.contains_key("anyOf") {
        return;
    }
    let Some(Value::Array(types)) = map.get("type").cloned() else {
        return;
    };
    map.remove("type");
    let mut assertions = map.clone();
    assertions.retain(|keyword, _| !is_annotation(keyword));
    map.retain(|keyword, _| is_annotation(keyword));
    let forms = types.into_iter().map(|kind| {
        let mut form = assertions.clone();
        form.retain(|keyword, _| match keyword.as_str() {
            "pattern" | "format" | "minLength" | "maxLength" => kind == "string",
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
                kind == "number" || kind == "integer"
            }
            _ => true,
        });
        form.insert("type".to_owned(), kind);
        Value::Object(form)
    });
    map.insert("anyOf".to_owned(), forms.collect());
}

fn is_annotation(keyword: &str) -> bool {
    matches!(
        keyword,
        "title" | "description" | "default" | "examples" | "deprecated" | "$defs" | "definitions"
    ) || crate::infer::order::is_mark(keyword)
}

/// Merges forms that are all names, some perhaps with their own description, into one list of names with one description.
/// Such forms result from enums of variants without data.
fn merge_names(map: &mut Map<String, Value>) {
    let Some(Value::Array(forms)) = map.get("anyOf") else {
        return;
    };
    if map.contains_key("type") || map.contains_key("enum") {
        return;
    }
    let mut names = Vec::new();
    let mut lines = Vec::new();
    for form in forms {
        let Some(of_form) = names_of(form) else {
            return;
        };
        if let (Some(text), [name]) = (
            form.get("description").and_then(Value::as_str),
            of_form.as_slice(),
        ) {
            lines.push(format!("- {name}: {text}"));
        }
        names.extend(of_form);
    }
    if names.is_empty() {
        return;
    }
    map.remove("anyOf");
    map.insert("type".to_owned(), "string".into());
    map.insert("enum".to_owned(), Value::Array(names));
    if !lines.is_empty() {
        let mut description = match map.remove("description") {
            Some(Value::String(text)) => text + "\n\n",
            _ => String::new(),
        };
        description.push_str(&lines.join("\n"));
        map.insert("description".to_owned(), description.into());
    }
}

fn names_of(form: &Value) -> Option<Vec<Value>> {
    let known = ["type", "const", "enum", "description"];
    let form = form.as_object()?;
    if form.get("type")? != "string" || !form.keys().all(|key| known.contains(&key.as_str())) {
        return None;
    }
    match (form.get("const"), form.get("enum")) {
        (Some(name), None) => Some(vec![name.clone()]),
        (None, Some(Value::Array(names))) => Some(names.clone()),
        _ => None,
    }
}

/// Converts the advertised schema to the validated one, which also accepts null for the marked properties.
pub(crate) fn tolerate_null(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    for_each_subschema(map, &mut |subschema| tolerate_null(subschema));
    if !map.contains_key(NULLABLE) {
        return;
    }
    let is_plain = !["anyOf", "oneOf", "allOf", "$ref", "not", "const"]
        .iter()
        .any(|keyword| map.contains_key(*keyword));
    match map.get_mut("type") {
        Some(kind @ Value::String(_)) if is_plain => {
            *kind = json!([kind.take(), "null"]);
            if let Some(Value::Array(values)) = map.get_mut("enum") {
                values.push(Value::Null);
            }
        }
        _ => {
            map.remove(NULLABLE);
            *schema = json!({"anyOf": [schema.take(), {"type": "null"}], NULLABLE: true});
        }
    }
}
