//! Handwritten schemas, and schemas of peers.

use oxmcp_schema::Schema;
use serde_json::{Value, json, value::RawValue};

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

fn error(schema: Value) -> String {
    Schema::from_json(schema).unwrap_err().message().to_owned()
}

#[test]
fn every_dialect_is_validated_by_its_own_rules() {
    let tuple = |dialect: &str, keyword: &str| {
        let mut schema = json!({"type": "array"});
        schema["$schema"] = dialect.into();
        schema[keyword] = json!([{"type": "integer"}]);
        Schema::from_json(schema)
    };
    let cases = [
        (
            "https://json-schema.org/draft/2020-12/schema",
            "prefixItems",
        ),
        ("https://json-schema.org/draft/2019-09/schema", "items"),
        ("http://json-schema.org/draft-07/schema#", "items"),
        ("https://json-schema.org/draft-07/schema", "items"),
        ("http://json-schema.org/draft-06/schema#", "items"),
        ("http://json-schema.org/draft-04/schema#", "items"),
    ];
    for (dialect, keyword) in cases {
        let schema = tuple(dialect, keyword).unwrap();
        assert!(schema.validate(&raw("[1]")).is_ok(), "{dialect}");
        assert!(schema.validate(&raw("[\"x\"]")).is_err(), "{dialect}");
    }
    assert!(tuple("https://json-schema.org/draft/2020-12/schema", "items").is_err());
}

#[test]
fn unknown_dialect_is_refused() {
    let message = error(json!({"$schema": "https://example.com/my-dialect"}));
    assert!(
        message.contains("unknown dialect: \"$schema\" is \"https://example.com/my-dialect\""),
        "{message}"
    );
    assert!(
        message.contains("https://json-schema.org/draft/2020-12/schema"),
        "{message}"
    );
    assert!(error(json!({"$schema": 7})).contains("unknown dialect"));
}

#[test]
fn remote_references_are_never_fetched() {
    for reference in [
        "https://example.com/schema.json",
        "file:///etc/passwd",
        "other.json",
        "#/$defs/none",
    ] {
        let message = error(json!({"type": "object", "properties": {"a": {"$ref": reference}}}));
        assert!(
            message.contains("references are never fetched"),
            "{message}"
        );
    }
    let local =
        json!({"$defs": {"n": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/n"}}});
    let schema = Schema::from_json(local).unwrap();
    assert!(schema.validate(&raw(r#"{"a":1}"#)).is_ok());
    assert!(schema.validate(&raw(r#"{"a":"x"}"#)).is_err());
}

#[test]
fn invalid_schema_error_names_the_place() {
    let message = error(json!({"properties": {"a": {"type": "strnig"}}}));
    assert!(message.contains("/properties/a/type"), "{message}");
    assert!(error(json!("text")).contains("invalid JSON Schema: "));
    assert!(error(json!({"pattern": "("})).contains("/pattern"));
}

/// The errors that an author reads after writing a schema for another dialect or from memory.
#[test]
fn invalid_schema_error_suggests_the_fix() {
    let old = |schema: Value| {
        let mut schema = schema;
        schema["$schema"] = "http://json-schema.org/draft-04/schema#".into();
        schema
    };
    let cases = [
        json!({"properties": {"a": {"type": "strnig"}}}),
        json!({"properties": {"a": {"type": ["string", "nul"]}}}),
        json!({"type": ["string", "string"]}),
        json!({"type": 7}),
        json!({"type": []}),
        json!("text"),
        json!({"properties": [{"type": "string"}]}),
        json!({"properties": {"a": "string"}}),
        json!({"properties": {"a": {"type": "string", "required": true}}}),
        json!({"required": ["a", 1]}),
        json!({"required": ["a", "a"]}),
        json!({"items": [{"type": "string"}]}),
        json!({"anyOf": {"type": "string"}}),
        json!({"anyOf": []}),
        json!({"minLength": -1}),
        json!({"minimum": "1"}),
        json!({"minimum": 1, "exclusiveMinimum": true}),
        json!({"multipleOf": 0}),
        json!({"dependentRequired": {"a": "b"}}),
        json!({"dependencies": {"a": "b"}}),
        json!({"$id": "a#b"}),
        json!({"$defs": {"a": {"$anchor": "1a"}}}),
        json!({"$vocabulary": {"a": 1}}),
        json!({"description": null}),
        old(json!({"minimum": 1, "exclusiveMinimum": 1})),
        old(json!({"exclusiveMinimum": true})),
        old(json!({"required": []})),
        old(json!({"not": true})),
        old(json!({"additionalProperties": 1})),
        old(json!({"items": [true]})),
    ];
    let told: Vec<String> = cases.into_iter().map(error).collect();
    insta::assert_snapshot!(told.join("\n").replace("invalid JSON Schema: ", ""), @r#"
    /properties/a/type: "strnig" is not accepted; expected one of "array", "boolean", "integer", "null", "number", "object", "string", or an array of some of them; did you mean "string"?
    /properties/a/type/1: "nul" is not accepted; expected one of "array", "boolean", "integer", "null", "number", "object", "string"; did you mean "null"?
    /type: the items are not unique
    /type: expected one of "array", "boolean", "integer", "null", "number", "object", "string", or an array of some of them, got the number 7
    /type: expected one of "array", "boolean", "integer", "null", "number", "object", "string", or an array of some of them, got an empty array
    /: expected a schema (an object, true or false), got the string "text"
    /properties: expected an object of schemas, got an array of length 1
    /properties/a: expected a schema (an object, true or false), got the string "string"
    /properties/a/required: expected an array of names, got true; put it next to "properties", as an array of the required names
    /required/1: expected a string, got the number 1
    /required: the items are not unique
    /items: expected a schema (an object, true or false), got an array of length 1; in this dialect, use "prefixItems" for one schema per position
    /anyOf: expected an array of at least one schema, got an object
    /anyOf: expected an array of at least one schema, got an empty array
    /minLength: expected an integer of at least 0, got the number -1
    /minimum: expected a number, got the string "1"
    /exclusiveMinimum: expected a number, got true; in this dialect it is the limit itself (a boolean only in draft-04)
    /multipleOf: expected a number of more than 0, got the number 0
    /dependentRequired/a: expected an array of names, got the string "b"
    /dependencies/a: expected a schema (an object, true or false), or an array of names, got the string "b"
    /$id: "a#b" is not accepted; expected a URI without a fragment
    /$defs/a/$anchor: "1a" is not accepted; expected a name of letters, digits, "-", "_" and ".", which begins with a letter
    /$vocabulary/a: expected true or false, got the number 1
    /description: expected a string, got null
    /exclusiveMinimum: expected true or false, got the number 1; in draft-04 it is a boolean, and the limit is in "minimum" or "maximum"
    /: "minimum" is missing
    /required: expected an array of at least one name, got an empty array
    /not: expected a schema (an object), got true
    /additionalProperties: expected a schema (an object), true or false, got the number 1
    /items/0: expected a schema (an object), got true
    "#);
}

/// A tool may take a schema.
#[test]
fn metaschemas_can_be_referenced() {
    let of = |dialect: &str| Schema::from_json(json!({"properties": {"s": {"$ref": dialect}}}));
    for dialect in [
        "https://json-schema.org/draft/2020-12/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-06/schema",
        "http://json-schema.org/draft-04/schema#",
    ] {
        let schema = of(dialect).unwrap();
        let told = |text: &str| schema.validate(&raw(text)).unwrap_err().to_string();
        assert_eq!(
            schema.validate(&raw(r#"{"s": {"items": {"minimum": 1}}}"#)),
            Ok(())
        );
        let wrong = told(r#"{"s": {"items": {"minimum": "1"}, "maxLength": -1}}"#);
        assert_eq!(
            wrong,
            "/s/items/minimum: expected a number, got the string \"1\"\n\
             /s/maxLength: expected an integer of at least 0, got the number -1"
        );
        assert!(told(r#"{"s": []}"#).starts_with("/s: expected a schema (an object"));
    }
    let part = of("http://json-schema.org/draft-07/schema#/definitions/nonNegativeInteger");
    let schema = part.unwrap();
    assert!(schema.validate(&raw(r#"{"s": 1}"#)).is_ok());
    assert!(schema.validate(&raw(r#"{"s": -1}"#)).is_err());
    let none = of("http://json-schema.org/draft-07/schema#/definitions/none");
    assert!(none.is_err());
}

/// The schema is as deep as a message may be, and each level is checked against the grammar.
#[test]
fn deep_schema_value_fails_without_a_crash() {
    let schema = json!({"$ref": "https://json-schema.org/draft/2020-12/schema"});
    let schema = Schema::from_json(schema).unwrap();
    let levels = |word: &str| {
        let (open, close) = (r#"{"not":"#.repeat(120), "}".repeat(120));
        schema.validate(&raw(&format!("{open}{word}{close}")))
    };
    assert_eq!(levels("true"), Ok(()));
    assert!(levels("1").is_err());
}

#[test]
fn schemas_are_bounded() {
    let mut deep = json!({});
    for _ in 0..200 {
        deep = json!({"items": deep});
    }
    assert!(error(deep).contains("is nested more than"));

    let wide: Vec<u32> = (0..200_000).collect();
    assert!(error(json!({"enum": wide})).contains("JSON values"));

    let mut defs = json!({"d0": {"type": "integer"}});
    for level in 1..40 {
        let below = json!({"$ref": format!("#/$defs/d{}", level - 1)});
        defs[format!("d{level}")] = json!({"allOf": [below, below]});
    }
    assert!(
        error(json!({"$ref": "#/$defs/d39", "$defs": defs}))
            .contains("its references expand to more than")
    );

    let mut chain = json!({"d0": {"type": "integer"}});
    for level in 1..20_000 {
        chain[format!("d{level}")] = json!({"$ref": format!("#/$defs/d{}", level - 1)});
    }
    assert!(
        error(json!({"$ref": "#/$defs/d19999", "$defs": chain}))
            .contains("its references expand to more than")
    );
}

#[test]
fn recursive_schema_is_accepted() {
    let schema = Schema::from_json(json!({
        "type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": false,
    }))
    .unwrap();
    assert!(schema.validate(&raw(r#"{"next":{"next":{}}}"#)).is_ok());
    assert!(schema.validate(&raw(r#"{"next":{"nxt":{}}}"#)).is_err());
}

#[test]
fn handwritten_schema_is_sent_verbatim() {
    let text = r#"{ "type":"object", "properties":{"z":{"type":"string","x-mcp-header":"Region"},"a":true}, "x-own":[1] }"#;
    assert_eq!(Schema::from_raw(&raw(text)).unwrap().as_raw().get(), text);

    let value: Value = serde_json::from_str(text).unwrap();
    let schema = Schema::from_json(value.clone()).unwrap();
    assert_eq!(schema.to_value(), value);
    assert_eq!(serde_json::to_value(&schema).unwrap(), value);
    assert_eq!(
        serde_json::to_string(&schema).unwrap(),
        schema.as_raw().get()
    );
}

#[test]
fn formats_are_annotations_in_every_dialect() {
    for dialect in [
        "https://json-schema.org/draft/2020-12/schema",
        "http://json-schema.org/draft-07/schema#",
    ] {
        let schema =
            Schema::from_json(json!({"$schema": dialect, "type": "integer", "format": "date"}))
                .unwrap();
        assert!(schema.validate(&raw("1")).is_ok());
        let schema = Schema::from_json(
            json!({"$schema": dialect, "type": "string", "format": "date", "pattern": "o"}),
        )
        .unwrap();
        assert!(schema.validate(&raw("\"no date\"")).is_ok());
    }
}
