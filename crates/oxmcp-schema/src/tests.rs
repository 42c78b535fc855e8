//! Tests that the fast check and the full validator agree on generated schemas.

use proptest::prelude::*;
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};

use crate::{fast::check::Check, schema::Schema};

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

/// A small set of names and values, so that instances often match schemas.
fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..4).prop_map(Value::from),
        Just(json!(1.0)),
        Just(json!(1.5)),
        Just(json!(u64::MAX)),
        Just(json!(9_007_199_254_740_993_i64)),
        prop::sample::select(vec!["", "a", "b", "ää", "long enough"]).prop_map(Value::from),
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "ä"]).prop_map(str::to_owned)
}

fn instance() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name(), inner, 0..4)
                .prop_map(|map| map.into_iter().collect()),
        ]
    })
}

fn type_name() -> impl Strategy<Value = Value> {
    let name = prop::sample::select(vec![
        "null", "boolean", "integer", "number", "string", "array", "object",
    ]);
    prop_oneof![
        4 => name.clone().prop_map(Value::from),
        1 => prop::collection::btree_set(name, 1..4).prop_map(|names| json!(names)),
    ]
}

fn keyword(
    inner: impl Strategy<Value = Value> + Clone + 'static,
) -> impl Strategy<Value = (String, Value)> {
    let count = (0_u64..3).prop_map(Value::from);
    let limit = prop_oneof![
        (-2_i64..3).prop_map(Value::from),
        Just(json!(0.5)),
        Just(json!(9_007_199_254_740_993_i64))
    ];
    let counted = prop::sample::select(vec![
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
    ]);
    let limited = prop::sample::select(vec![
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
    ]);
    let nested = prop::sample::select(vec!["items", "additionalProperties", "not", "x-other"]);
    let several = prop::sample::select(vec!["anyOf", "anyOf", "oneOf", "allOf", "prefixItems"]);
    let pair = |(name, value): (&str, Value)| (name.to_owned(), value);
    prop_oneof![
        4 => type_name().prop_map(|names| ("type".to_owned(), names)),
        4 => prop::collection::btree_map(name(), inner.clone(), 1..4)
            .prop_map(|map| ("properties".to_owned(), json!(map))),
        2 => prop::collection::btree_set(name(), 0..3).prop_map(|names| ("required".to_owned(), json!(names))),
        1 => prop::collection::vec(scalar(), 1..4).prop_map(|values| ("enum".to_owned(), values.into())),
        1 => scalar().prop_map(|value| ("const".to_owned(), value)),
        2 => (counted, count).prop_map(pair),
        2 => (limited, limit).prop_map(pair),
        2 => (nested, inner.clone()).prop_map(pair),
        2 => (several, prop::collection::vec(inner, 1..3).prop_map(Value::from)).prop_map(pair),
        1 => Just(("description".to_owned(), "text".into())),
    ]
}

fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => type_name().prop_map(|names| json!({"type": names})),
        1 => any::<bool>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let keywords = prop::collection::vec(keyword(inner.clone().boxed()), 0..5);
        prop_oneof![
            2 => keywords.prop_map(|keywords| keywords.into_iter().collect()),
            1 => record(inner),
        ]
    })
}

/// The usual schema of a tool: properties, some of them required.
fn record(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    prop::collection::btree_map(name(), (inner, any::<bool>()), 1..4).prop_map(|properties| {
        let required: Vec<_> = properties
            .iter()
            .filter(|(_, (_, required))| *required)
            .collect();
        let required: Vec<_> = required.into_iter().map(|(name, _)| name.clone()).collect();
        let properties: Value = properties
            .into_iter()
            .map(|(name, (schema, _))| (name, schema))
            .collect();
        json!({"type": "object", "properties": properties, "required": required})
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn fast_check_accepts_only_valid_values(schema in schema(), instance in instance()) {
        let Ok(schema) = Schema::from_json(schema) else { return Ok(()) };
        let instance = to_raw_value(&instance).unwrap();
        if schema.accepts_fast(&instance) {
            prop_assert_eq!(schema.validate_by_full(&instance), Ok(()));
        }
    }

    #[test]
    fn values_accepted_while_writing_are_accepted_as_text(schema in schema(), instance in instance()) {
        let Ok(schema) = Schema::from_json(schema) else { return Ok(()) };
        let text = to_raw_value(&instance).unwrap();
        let written = Schema::write(Some(&schema), &instance).unwrap();
        prop_assert_eq!(written.json.get(), text.get());
        prop_assert_eq!(written.is_valid, schema.accepts_fast(&text));
    }
}

/// The fast check must accept these values without the full validator.
#[test]
fn plain_values_are_accepted_fast() {
    let pair = json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    });
    let rich = json!({
        "type": "object",
        "description": "all that is common",
        "properties": {
            "unit": {"type": "string", "enum": ["C", "F"], "default": "C"},
            "limit": {"type": ["integer", "null"], "minimum": 1, "maximum": 9},
            "tags": {"type": "array", "items": {"type": "string", "minLength": 1}, "maxItems": 3},
            "place": {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"x": {"type": "number"}}}]},
            "free": {},
        },
        "required": ["unit"],
        "additionalProperties": {"type": "boolean"},
    });
    let cases = [
        (&pair, r#"{"a":1,"b":2}"#),
        (
            &pair,
            r#" { "b" : -2 , "a" : 1, "more": {"deep": [1, {"x": null}]} } "#,
        ),
        (&rich, r#"{"unit":"\u0043"}"#),
        (
            &rich,
            r#"{"unit":"F","limit":null,"tags":["a","ä"],"place":{"x":1.5},"free":[{}],"other":true}"#,
        ),
        (&rich, r#"{"unit":"F","limit":9,"place":"here"}"#),
    ];
    for (schema, text) in cases {
        let schema = Schema::from_json(schema.clone()).unwrap();
        assert!(schema.accepts_fast(&raw(text)), "{text}");
        assert_eq!(schema.validate_by_full(&raw(text)), Ok(()), "{text}");
    }
}

/// Long lists of values are left to the full validator, since the fast check compares them one by one.
#[test]
fn fast_check_leaves_costly_schemas_to_the_validator() {
    let scalars = |count: i64| (0..count).map(Value::from).collect::<Vec<_>>();
    for (count, is_fast) in [(64, true), (65, false)] {
        let schema = Schema::from_json(json!({"enum": scalars(count)})).unwrap();
        assert_eq!(schema.accepts_fast(&raw("63")), is_fast);
        assert_eq!(schema.validate(&raw("63")), Ok(()));
    }
    let mut forms = vec![json!({"type": ["null", "string"]}); 1_000];
    forms.push(json!({"type": "string", "maxLength": 1}));
    forms.push(json!({"type": ["string", "integer"]}));
    let Check::AnyOf(kept) = Check::compile(&json!({"anyOf": forms})) else {
        panic!("it is of several forms");
    };
    assert_eq!(kept.len(), 2, "others would never be asked");
}

/// A near miss for each keyword: random tests do not hit every limit in every run.
#[test]
fn every_keyword_is_checked() {
    let cases = [
        (json!({"type": "integer"}), "1.5"),
        (json!({"type": "number"}), "\"1\""),
        (json!({"type": ["string", "null"]}), "1"),
        (json!({"minimum": 1}), "0"),
        (json!({"maximum": 1}), "2"),
        (json!({"exclusiveMinimum": 1}), "1"),
        (json!({"exclusiveMaximum": 1}), "1.0"),
        (
            json!({"maximum": 9_007_199_254_740_992_i64}),
            "9007199254740993",
        ),
        (json!({"minLength": 2}), "\"ä\""),
        (json!({"maxLength": 1}), "\"ab\""),
        (json!({"minItems": 2}), "[1]"),
        (json!({"maxItems": 1}), "[1,2]"),
        (json!({"items": {"type": "string"}}), "[\"a\",1]"),
        (json!({"enum": ["a", 1, null]}), "\"b\""),
        (json!({"const": true}), "false"),
        (json!({"const": 2, "enum": [1]}), "1"),
        (json!({"enum": [1], "const": 2}), "2"),
        (json!({"properties": {"a": {"type": "null"}}}), "{\"a\":1}"),
        (
            json!({"properties": {"a": {}, "b": {}}, "required": ["b"]}),
            "{\"a\":1}",
        ),
        (json!({"required": ["b"]}), "{}"),
        (json!({"additionalProperties": false}), "{\"a\":1}"),
        (
            json!({"properties": {"a": {}}, "additionalProperties": {"type": "null"}}),
            "{\"b\":1}",
        ),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            "1",
        ),
        (
            json!({"type": "object", "anyOf": [{"type": "string"}]}),
            "\"a\"",
        ),
        (json!({"anyOf": [{"type": "integer"}], "maximum": 1}), "2"),
        (json!({"allOf": [{"type": "string"}]}), "1"),
        (
            json!({"patternProperties": {"^a": {"type": "null"}}}),
            "{\"a\":1}",
        ),
        (
            json!({"$ref": "#/$defs/n", "$defs": {"n": {"type": "null"}}}),
            "1",
        ),
    ];
    for (schema, text) in cases {
        let compiled = Schema::from_json(schema.clone()).unwrap();
        assert!(
            compiled.validate_by_full(&raw(text)).is_err(),
            "{schema} {text}"
        );
        assert!(!compiled.accepts_fast(&raw(text)), "{schema} {text}");
    }
}

/// JSON that is read twice is read in the same way: the last of equal names counts for the full validator, and the fast
/// check accepts none of them.
#[test]
fn duplicate_names_cannot_bypass_validation() {
    let schema = Schema::from_json(json!({
        "type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"],
    }))
    .unwrap();
    assert!(!schema.accepts_fast(&raw(r#"{"a":1,"a":"x"}"#)));
    assert!(schema.validate(&raw(r#"{"a":1,"a":"x"}"#)).is_err());
    assert!(!schema.accepts_fast(&raw(r#"{"a":"x","a":1}"#)));
    assert!(schema.validate(&raw(r#"{"a":"x","a":1}"#)).is_ok());
    assert!(!schema.accepts_fast(&raw(r#"{"a":1,"a":1}"#)));
    assert!(schema.validate(&raw(r#"{"a":1,"a":1}"#)).is_ok());
}

/// More properties than there are bits, and more than are compared one by one.
#[test]
fn object_of_many_properties_is_accepted_fast() {
    let names: Vec<_> = (0..70).map(|place| format!("p{place:02}")).collect();
    let properties: Value = names
        .iter()
        .map(|name| (name.clone(), json!({"type": "integer"})))
        .collect();
    let schema = json!({"type": "object", "properties": properties, "required": ["p03", "p40"]});
    let schema = Schema::from_json(schema).unwrap();
    let object = |names: &mut dyn Iterator<Item = &String>| {
        let members: Vec<_> = names.map(|name| format!("\"{name}\":1")).collect();
        format!("{{{}}}", members.join(","))
    };
    let cases = [
        (object(&mut names.iter()), true, true),
        (object(&mut names.iter().rev()), true, true),
        (object(&mut names.iter().take(50)), true, false),
        (object(&mut names.iter().skip(4)), false, true),
        (object(&mut names.iter().chain(&names[7..8])), false, true),
        (object(&mut names.iter().chain(&names[69..])), true, true),
    ];
    for (text, is_accepted, has_unlisted_names) in cases {
        assert_eq!(schema.accepts_fast(&raw(&text)), is_accepted, "{text}");
        let read = schema.read::<Value>(oxmcp_json::Text::checked(&text));
        let read = read.map(|read| read.has_unlisted_names);
        assert_eq!(read, is_accepted.then_some(has_unlisted_names), "{text}");
    }
}

#[test]
fn input_schema_must_describe_an_object() {
    let cases: [(Schema, Option<&str>); 6] = [
        (Schema::of::<()>(), None),
        (Schema::of::<Value>(), None),
        (
            Schema::of::<Option<std::collections::BTreeMap<String, u8>>>(),
            None,
        ),
        (Schema::of::<Vec<String>>(), Some("accepts an array;")),
        (Schema::of::<f64>(), Some("accepts a number;")),
        (
            Schema::from_json(json!({"properties": {}})).unwrap(),
            Some("set \"type\": \"object\""),
        ),
    ];
    for (schema, message) in cases {
        let result = schema.ensure_object();
        match message {
            None => assert!(result.is_ok(), "{schema:?}"),
            Some(part) => assert!(result.unwrap_err().message().contains(part), "{schema:?}"),
        }
    }
}
