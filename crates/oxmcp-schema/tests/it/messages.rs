//! The messages that a model reads when its arguments are wrong.

use std::fmt::Write;

use oxmcp_schema::Schema;
use serde_json::{Value, json, value::to_raw_value};

fn reason(schema: &Value, instance: &Value) -> String {
    let schema = Schema::from_json(schema.clone()).unwrap();
    match schema.validate(&to_raw_value(instance).unwrap()) {
        Ok(()) => "valid".to_owned(),
        Err(violations) => violations.to_string(),
    }
}

/// The messages about each value of the property `p` in a table, a line each.
fn table(cases: &[(Value, Value)]) -> String {
    let mut text = String::new();
    for (schema, instance) in cases {
        let schema = json!({"type": "object", "properties": {"p": schema}});
        writeln!(text, "{}", reason(&schema, &json!({"p": instance}))).unwrap();
    }
    text
}

#[test]
fn type_errors_name_expected_and_actual() {
    insta::assert_snapshot!(table(&[
        (json!({"type": "number"}), json!("two")),
        (json!({"type": "integer", "minimum": 1, "maximum": 9}), json!(1.5)),
        (json!({"type": "integer", "minimum": 1}), json!("1")),
        (json!({"type": "number", "maximum": 1}), json!(null)),
        (json!({"type": "string"}), json!({"a": 1})),
        (json!({"type": "boolean"}), json!("yes")),
        (json!({"type": "array"}), json!("a,b")),
        (json!({"type": "object"}), json!([1, 2])),
        (json!({"type": "object", "required": ["x", "y"]}), json!([])),
        (json!({"type": "null"}), json!({})),
        (json!({"type": ["string", "null"]}), json!(7)),
        (json!(false), json!(7)),
    ]), @r#"
    /p: expected a number, got the string "two"
    /p: expected an integer from 1 to 9, got the number 1.5
    /p: expected an integer of at least 1, got the string "1"
    /p: expected a number of at most 1, got null
    /p: expected a string, got an object
    /p: expected true or false, got the string "yes"
    /p: expected an array, got the string "a,b"
    /p: expected an object, got an array of length 2
    /p: expected an object with "x", "y", got an empty array
    /p: expected null, got an empty object
    /p: expected a string or null, got the number 7
    /p: no value is accepted here, got the number 7
    "#);
}

#[test]
fn value_errors_name_the_expected_value() {
    insta::assert_snapshot!(table(&[
        (json!({"enum": ["C", "F"]}), json!("K")),
        (json!({"type": "string", "enum": ["C", "F"]}), json!(["C"])),
        (json!({"enum": [1, null, true]}), json!(2)),
        (json!({"const": "x"}), json!("y")),
        (json!({"const": {"a": 1}}), json!({"a": 2})),
        (json!({"enum": (0..40).collect::<Vec<_>>()}), json!(41)),
        (json!({"not": {"type": "string"}}), json!("y")),
    ]), @r#"
    /p: "K" is not accepted; expected one of "C", "F"
    /p: expected one of "C", "F", got an array of length 1
    /p: 2 is not accepted; expected one of 1, null, true
    /p: "y" is not accepted; expected "x"
    /p: expected {"a":1}, got an object
    /p: 41 is not accepted; expected one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, …
    /p: the string "y" is not accepted; expected anything but a string
    "#);
}

#[test]
fn limit_errors_name_the_limit() {
    insta::assert_snapshot!(table(&[
        (json!({"minimum": 1}), json!(0)),
        (json!({"maximum": 1.5}), json!(2)),
        (json!({"exclusiveMinimum": 0}), json!(0)),
        (json!({"exclusiveMaximum": 10}), json!(10)),
        (json!({"multipleOf": 5}), json!(7)),
        (json!({"minLength": 3}), json!("ab")),
        (json!({"maxLength": 3}), json!("abcd")),
        (json!({"pattern": "^[0-9]+$"}), json!("12a")),
        (json!({"minItems": 2}), json!([1])),
        (json!({"maxItems": 1}), json!([1, 2])),
        (json!({"uniqueItems": true}), json!([1, 1])),
        (json!({"contains": {"const": 1}}), json!([2])),
        (json!({"prefixItems": [{}], "items": false}), json!([2, 3])),
        (json!({"minProperties": 1}), json!({})),
        (json!({"maxProperties": 1}), json!({"a": 1, "b": 2})),
        (json!({"propertyNames": {"maxLength": 1}}), json!({"ab": 1})),
    ]), @r#"
    /p: 0 is too small; expected at least 1
    /p: 2 is too large; expected at most 1.5
    /p: 0 is too small; expected more than 0
    /p: 10 is too large; expected less than 10
    /p: 7 is not a multiple of 5
    /p: "ab" is too short (length 2); expected at least 3
    /p: "abcd" is too long (length 4); expected at most 3
    /p: "12a" does not match the pattern ^[0-9]+$
    /p: too few items (1); expected at least 2
    /p: too many items (2); expected at most 1
    /p: the items are not unique
    /p: no item matches "contains" (1)
    /p/1: no value is accepted here, got the number 3
    /p: too few properties (0); expected at least 1
    /p: too many properties (2); expected at most 1
    /p: the name "ab" is too long (length 2); expected at most 1
    "#);
}

#[test]
fn rule_errors_name_the_rule() {
    insta::assert_snapshot!(table(&[
        (json!({"contains": {"type": "string"}, "minContains": 2}), json!(["a"])),
        (json!({"contains": {"type": "string"}, "maxContains": 1}), json!(["a", "b"])),
        (json!({"prefixItems": [{}], "unevaluatedItems": false}), json!([1, 2])),
        (json!({"allOf": [{"properties": {"x": {}}}], "unevaluatedProperties": false}), json!({"y": 1})),
        (json!({"dependentRequired": {"card": ["address"]}}), json!({"card": 1})),
        (json!({"dependentSchemas": {"card": {"required": ["address"]}}}), json!({"card": 1})),
        (json!({"if": {"type": "string"}, "then": {"minLength": 3}}), json!("a")),
        (json!({"patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": false}), json!({"x-a": 1, "y": 2})),
        (json!({"anyOf": [{"$ref": "#/properties/p/$defs/n"}, {"type": "array"}], "$defs": {"n": {"type": "integer"}}}), json!("x")),
    ]), @r#"
    /p: too few items match "contains" (a string); expected at least 2
    /p: too many items match "contains" (a string); expected at most 1
    /p/1: no value is accepted here, got the number 2
    /p: "y" is not accepted
    /p: "address" is missing
    /p: "address" is missing
    /p: "a" is too short (length 1); expected at least 3
    /p/x-a: expected a string, got the number 1
    /p: "y" is not accepted; names must match ^x-
    /p: expected an integer or an array, got the string "x"
    "#);
}

#[test]
fn member_errors_name_the_member() {
    let schema = json!({
        "type": "object",
        "properties": {
            "unit": {"enum": ["C", "F"]},
            "max_results": {"type": "integer"},
            "anything": {},
        },
        "required": ["unit", "anything"],
        "additionalProperties": false,
    });
    let mut text = String::new();
    for instance in [
        json!({}),
        json!({"Unit": "C", "anything": 1}),
        json!({"unit": "C", "anything": 1, "maxResults": 5}),
        json!({"unit": "C", "anything": 1, "colour": 5, "size": 1}),
        json!([1]),
    ] {
        writeln!(text, "{}\n", reason(&schema, &instance)).unwrap();
    }
    let closed = json!({"type": "object", "additionalProperties": false});
    text.push_str(&reason(&closed, &json!({"a": 1})));
    insta::assert_snapshot!(text, @r#"
    /: "unit" is missing (one of "C", "F")
    /: "anything" is missing

    /: "unit" is missing (one of "C", "F"); found "Unit" instead
    /: "Unit" is not accepted; did you mean "unit"? (accepted: "unit", "anything", "max_results")

    /: "maxResults" is not accepted; did you mean "max_results"? (accepted: "unit", "anything", "max_results")

    /: "colour", "size" are not accepted (accepted: "unit", "anything", "max_results")

    /: expected an object with "unit", "anything", got an array of length 1

    /: no properties are accepted; expected an empty object, {}
    "#);
}

#[test]
fn alternative_errors_describe_the_closest_match() {
    let shapes = json!({"anyOf": [
        {"type": "object", "properties": {"kind": {"const": "circle"}, "r": {"type": "number"}}, "required": ["kind", "r"]},
        {"type": "object", "properties": {"kind": {"enum": ["square"]}, "side": {"type": "number"}}, "required": ["kind", "side"]},
    ]});
    let mixed =
        json!({"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 0}, {"type": "null"}]});
    let exclusive = json!({"oneOf": [{"type": "integer"}, {"minimum": 2}]});
    insta::assert_snapshot!(table(&[
        (shapes.clone(), json!({"kind": "circle", "r": "big"})),
        (shapes.clone(), json!({"kind": "square"})),
        (shapes.clone(), json!({"kind": "triangle"})),
        (shapes, json!("circle")),
        (mixed.clone(), json!(true)),
        (mixed, json!(-1)),
        (exclusive, json!(3)),
    ]), @r#"
    /p/r: expected a number, got the string "big"
    /p: "side" is missing (a number)
    /p/kind: "triangle" is not accepted; expected one of "circle", "square"
    /p: expected an object with "kind" "circle" or an object with "kind" "square", got the string "circle"
    /p: expected a string or an integer of at least 0 or null, got true
    /p: -1 is too small; expected at least 0
    /p: more than one alternative matches; expected exactly one
    "#);
}

#[test]
fn errors_name_the_place() {
    let schema = json!({"type": "object", "properties": {"a/b": {"type": "array", "items": {
        "type": "object", "properties": {"x": {"type": "integer"}},
    }}}});
    insta::assert_snapshot!(reason(&schema, &json!({"a/b": [{"x": 1}, {"x": "2"}, 3]})), @r#"
    /a~1b/1/x: expected an integer, got the string "2"
    /a~1b/2: expected an object, got the number 3
    "#);
}

#[test]
fn tolerated_null_is_not_suggested() {
    #[derive(oxmcp_schema::JsonSchema)]
    #[expect(dead_code, reason = "only the schema is wanted")]
    struct Query {
        limit: Option<u8>,
        place: Option<Place>,
    }
    #[derive(oxmcp_schema::JsonSchema)]
    #[serde(untagged)]
    #[expect(dead_code, reason = "only the schema is wanted")]
    enum Place {
        Name(String),
        Point { x: f64 },
    }
    let schema = Schema::of::<Query>();
    let check = |value: Value| schema.validate(&to_raw_value(&value).unwrap());
    assert_eq!(check(json!({"limit": null, "place": null})), Ok(()));
    let violations = check(json!({"limit": "x", "place": 7})).unwrap_err();
    insta::assert_snapshot!(violations.to_string(), @r#"
    /limit: expected an integer from 0 to 255, got the string "x"
    /place: expected a string or an object with "x", got the number 7
    "#);
}

#[test]
fn huge_values_are_abbreviated_in_messages() {
    let schema = json!({
        "type": "object",
        "properties": {"text": {"type": "string", "maxLength": 3}, "list": {"items": {"type": "string"}}},
        "additionalProperties": false,
    });
    let long = "ä".repeat(10_000);
    let text = reason(
        &schema,
        &json!({"text": long, &long: 1, "list": (0..1_000).collect::<Vec<_>>()}),
    );
    assert!(text.len() < 2_000, "{} bytes: {text}", text.len());
    assert!(
        text.ends_with("There are more errors; fix these first."),
        "{text}"
    );

    let million: Vec<u32> = (0..100_000).collect();
    let text = reason(&schema, &json!({"list": million}));
    assert!(
        text.starts_with("/list/0: expected a string, got the number 0\n"),
        "{text}"
    );
    assert_eq!(text.lines().count(), 9, "{text}");
    let either = json!({"anyOf": [{"items": {"type": "string"}}, {"items": {"type": "boolean"}}]});
    let text = reason(&either, &json!(million));
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.starts_with("/: expected"), "{text}");
}

#[test]
fn violations_can_be_iterated() {
    let schema =
        Schema::from_json(json!({"properties": {"a": {"type": "string"}}, "required": ["b"]}))
            .unwrap();
    let violations = schema
        .validate(&to_raw_value(&json!({"a": 1})).unwrap())
        .unwrap_err();
    let pointers: Vec<&str> = violations
        .iter()
        .map(oxmcp_schema::Violation::pointer)
        .collect();
    assert_eq!(pointers, ["", "/a"]);
    assert!(
        violations
            .iter()
            .all(|violation| !violation.message().is_empty())
    );
}

#[test]
fn deep_nesting_fails_without_a_crash() {
    let schema = Schema::from_json(json!({"type": "array", "items": {"$ref": "#"}})).unwrap();
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let deep = serde_json::value::RawValue::from_string(deep).unwrap();
    assert!(
        schema
            .validate(&deep)
            .unwrap_err()
            .to_string()
            .contains("cannot parse the value")
    );
}
