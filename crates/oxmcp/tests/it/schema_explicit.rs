//! Schemas written by hand, and by peers (rows M1, M10, M12).

use oxmcp::Schema;
use serde_json::{Value, json, value::RawValue};

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

fn error(schema: Value) -> String {
    Schema::from_json(schema).unwrap_err().message().to_owned()
}

#[test]
fn m12_every_dialect_is_validated_by_its_own_rules() {
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
fn an_unknown_dialect_is_refused() {
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
fn m12_nothing_is_fetched() {
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
fn what_is_no_schema_is_refused_with_its_place() {
    let message = error(json!({"properties": {"a": {"type": "strnig"}}}));
    assert!(message.contains("/properties/a/type"), "{message}");
    assert!(error(json!("text")).contains("no valid JSON Schema"));
    assert!(error(json!({"pattern": "("})).contains("/pattern"));
}

#[test]
fn schemas_are_bounded() {
    let mut deep = json!({});
    for _ in 0..200 {
        deep = json!({"items": deep});
    }
    assert!(error(deep).contains("nests deeper"));

    let wide: Vec<u32> = (0..200_000).collect();
    assert!(error(json!({"enum": wide})).contains("JSON values"));

    let mut defs = json!({"d0": {"type": "integer"}});
    for level in 1..40 {
        let below = json!({"$ref": format!("#/$defs/d{}", level - 1)});
        defs[format!("d{level}")] = json!({"allOf": [below, below]});
    }
    assert!(
        error(json!({"$ref": "#/$defs/d39", "$defs": defs})).contains("refers to parts of itself")
    );

    let mut chain = json!({"d0": {"type": "integer"}});
    for level in 1..20_000 {
        chain[format!("d{level}")] = json!({"$ref": format!("#/$defs/d{}", level - 1)});
    }
    assert!(
        error(json!({"$ref": "#/$defs/d19999", "$defs": chain}))
            .contains("refers to parts of itself")
    );
}

#[test]
fn a_recursive_schema_is_fine() {
    let schema = Schema::from_json(json!({
        "type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": false,
    }))
    .unwrap();
    assert!(schema.validate(&raw(r#"{"next":{"next":{}}}"#)).is_ok());
    assert!(schema.validate(&raw(r#"{"next":{"nxt":{}}}"#)).is_err());
}

#[test]
fn m1_a_schema_is_sent_as_it_is() {
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
fn formats_are_hints_in_every_dialect() {
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
