//! Tests that reading, the fast check and the full validator agree on JSON as peers write it.

use oxmcp_json::Text;
use proptest::{collection::vec, prelude::*, sample::select};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json, value::RawValue};

use crate::{fast::read::Read, schema::Schema};

#[derive(Debug, Deserialize, PartialEq)]
struct Typed {
    a: Option<i64>,
    b: Option<u8>,
    c: Option<f64>,
    d: Option<Value>,
}

/// The schema of an object, in one of the dialects, which differ in the definition of integers and in exclusive limits.
fn schema() -> impl Strategy<Value = Value> {
    let property = select(vec![
        json!(true),
        json!({"type": "integer"}),
        json!({"type": "integer", "minimum": 0, "maximum": 9_007_199_254_740_993_i64}),
        json!({"type": "number", "exclusiveMinimum": 0, "maximum": 1.5}),
        json!({"minimum": 0, "exclusiveMinimum": true}),
        json!({"type": ["string", "null"], "minLength": 1, "maxLength": 2}),
        json!({"enum": ["a", 1, null, 9_007_199_254_740_993_i64]}),
        json!({"const": 1.0}),
        json!({"anyOf": [{"type": "string", "maxLength": 1}, {"type": "integer", "maximum": 5}, {"type": "null"}]}),
        json!({"type": "array", "items": {"type": "integer"}, "maxItems": 2}),
        json!({"type": "array", "items": {"type": "object", "properties": {"x": {}}}}),
        json!({"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}),
        json!({"type": "object", "additionalProperties": {"type": ["integer", "null"]}}),
    ]);
    let additional = select(vec![
        json!(true),
        json!(false),
        json!({}),
        json!({"type": "string"}),
    ]);
    let dialect = select(vec![
        "https://json-schema.org/draft/2020-12/schema",
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-04/schema",
    ]);
    let required = select(vec![json!([]), json!(["a"]), json!(["b", "a"])]);
    (vec(property, 3), additional, dialect, required).prop_map(
        |(properties, additional, dialect, required)| {
            let [a, b, c] = properties.try_into().unwrap();
            let mut schema = json!({
                "$schema": dialect, "type": "object", "properties": {"a": a, "b": b, "c": c}, "additionalProperties": additional,
            });
            // Draft-04 does not allow an empty list of names.
            if required != json!([]) {
                schema["required"] = required;
            }
            schema
        },
    )
}

/// An object as text, with numbers at the limits of all types, and with escaped or duplicate names.
fn object() -> impl Strategy<Value = String> {
    let name = select(vec!["a", "b", "c", "d", r"\u0061"]);
    let value = select(vec![
        "null",
        "true",
        "0",
        "-0",
        "-0.0",
        "1",
        "1.0",
        "1e0",
        "10e-1",
        "-1",
        "1.5",
        "2",
        "256",
        "1e400",
        "1e-400",
        "9007199254740991",
        "9007199254740993",
        "-9223372036854775808",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        r#""""#,
        r#""a""#,
        r#""\u0061""#,
        r#""\ud83d\ude00""#,
        r#""\ud800""#,
        r#""abc""#,
        r#""ä\"""#,
        "[]",
        "[1 , 2]",
        "[1.0]",
        "[1,2,3]",
        "{}",
        r#"{"x":1}"#,
        r#"{ "x":"1"}"#,
        r#"{"x":1,"x":null}"#,
        r#"{"x":1,"x":2}"#,
        r#"{"y":1,"y":2}"#,
        r#"{"x":{"y":1,"y":2}}"#,
        r#"[{"x":1},{"x":1,"\u0078":2}]"#,
    ]);
    let member = (name, value, select(vec!["", " ", "\n\t"]));
    let member = member.prop_map(|(name, value, space)| {
        format!(r#"{space}"{name}"{space}:{space}{value}{space}"#)
    });
    vec(member, 0..5).prop_map(|members| format!("{{{}}}", members.join(",")))
}

fn is_read_as_it_would_be<T: DeserializeOwned + PartialEq>(schema: &Schema, json: &str) -> bool {
    let read = schema.read::<T>(Text::checked(json)).map(|read| read.value);
    read.is_none() || read == serde_json::from_str(json).ok()
}

/// Whether the fast check, when it accepts the object, has proven that it has no duplicate names, and whether the
/// reader has.
fn are_names_proven_single(schema: &Schema, json: &str) -> [bool; 2] {
    let text = Text::checked(json);
    let read = schema.read::<Value>(text);
    let is_plain = |read: Read<Value>| !read.has_unlisted_names;
    [schema.names_are_single(text), read.is_some_and(is_plain)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn values_accepted_in_one_pass_are_valid(schema in schema(), json in object()) {
        let Ok(schema) = Schema::from_json(schema) else { return Ok(()) };
        prop_assert!(is_read_as_it_would_be::<Value>(&schema, &json), "{schema:?} {json}");
        prop_assert!(is_read_as_it_would_be::<Typed>(&schema, &json), "{schema:?} {json}");
        if Text::checked(&json).duplicate_key().is_some() {
            prop_assert_eq!(are_names_proven_single(&schema, &json), [false; 2], "{:?} {}", schema, json);
        }
        let raw = RawValue::from_string(json.clone()).unwrap();
        // A text that no `Value` can be built from cannot be checked by the full validator.
        if serde_json::from_str::<Value>(&json).is_ok() {
            let text = Text::checked(&json);
            let is_accepted = schema.accepts_fast(&raw) || schema.read::<Typed>(text).is_some();
            prop_assert!(!is_accepted || schema.validate_by_full(&raw).is_ok(), "{schema:?} {json}");
        }
    }
}
