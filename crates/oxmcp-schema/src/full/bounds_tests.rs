//! Tests that neither a schema nor a value can cause disproportionate work or memory use. Tests that do not count steps
//! use sizes for which an unbounded implementation would run for hours.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::{
    full::{dialect::Dialect, nodes::Validator, run::BudgetExceeded},
    schema::Schema,
    violations::Violations,
};

fn compile(schema: &Value) -> Validator {
    Dialect::DEFAULT.compile(schema.clone()).unwrap()
}

/// The violations of a value.
#[track_caller]
fn violations(schema: Value, text: String) -> Violations {
    let schema = Schema::from_json(schema).unwrap();
    let value = serde_json::value::RawValue::from_string(text).unwrap();
    schema.validate(&value).unwrap_err()
}

/// Invalid members below a name that is most of the value.
fn below_a_long_name(count: usize) -> String {
    let mut text = format!("{{\"{}\":{{\"a\":0", "n".repeat(2 << 20));
    for index in 0..count {
        write!(text, ",\"{index}\":0").unwrap();
    }
    text + "}}"
}

#[test]
fn report_of_many_invalid_members_is_bounded() {
    let schema = json!({"additionalProperties": {"additionalProperties": {
        "anyOf": [{"type": "string"}, {"type": "null"}, {"minimum": 7}, {"pattern": "a", "type": "array"}],
    }}});
    let told = violations(schema, below_a_long_name(350_000)).to_string();
    assert!(told.len() < 10_000 && told.contains("nnn…"), "{told}");
    let schema = json!({"additionalProperties": {"unevaluatedProperties": {
        "anyOf": [{"type": "string"}, {"type": "null"}],
    }}});
    let validator = compile(&schema);
    let value: Value = serde_json::from_str(&below_a_long_name(350_000)).unwrap();
    let failures = validator.failures(&value, 2 << 20).unwrap();
    assert_eq!(failures.len(), 32);
    assert!(failures.iter().all(|failure| failure.pointer.len() < 1_000));
}

/// Nested alternatives keep few failures.
#[test]
fn nested_alternatives_keep_few_failures() {
    let list = json!({"type": "array", "items": {"$ref": "#"}});
    let validator = compile(&json!({"anyOf": [list, list, {"type": "string"}]}));
    let leaves = Value::from(vec![0; 40]);
    let value = json!(vec![json!(vec![leaves; 40]); 40]);
    let length = value.to_string().len();
    assert!(matches!(
        validator.failures(&value, length),
        Err(BudgetExceeded)
    ));
    // Alternatives of a value that is accepted in the end keep none.
    let schema = json!({"items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}});
    let mut value = vec![json!(7); 300_000];
    value.push(Value::Null);
    let failures = compile(&schema);
    let value = Value::from(value);
    let failures = failures.failures(&value, 600_000).unwrap();
    assert_eq!(failures.len(), 1);
}

/// Many names, each with this value.
fn names(count: usize, value: &Value) -> Value {
    (0..count)
        .map(|index| (index.to_string(), value.clone()))
        .collect()
}

/// A schema that refers to the same schema many times.
fn same(schema: &Value) -> Value {
    let reference = json!({"$ref": "#/$defs/it"});
    json!({"allOf": vec![reference; 40_000], "$defs": {"it": schema}})
}

#[test]
fn comparing_and_counting_use_steps() {
    let text = Value::from("a".repeat(1 << 20));
    let long = json!(["a".repeat(1 << 20), "b"]);
    for (schema, value) in [
        (json!({"maxLength": 2_000_000}), &text),
        (json!({"enum": [text, "a", "b"]}), &text),
        (json!({"const": long}), &long),
        (
            json!({"uniqueItems": true}),
            &json!([text, text.as_str().unwrap().to_owned() + "b"]),
        ),
        (
            json!({"propertyNames": true}),
            &json!({"a".repeat(1 << 20): 1}),
        ),
        (
            json!({"additionalProperties": true}),
            &json!({"a".repeat(1 << 20): 1}),
        ),
    ] {
        let validator = compile(&same(&schema));
        // A single one is cheap; all of them would take gigabytes.
        assert_eq!(compile(&schema).accepts(value, 1 << 20), Ok(true));
        assert_eq!(validator.accepts(value, 1 << 20), Err(BudgetExceeded));
    }
}

#[test]
fn dependent_keywords_and_division_use_steps() {
    for (schema, value) in [
        (
            json!({"dependentRequired": names(2_000, &json!([]))}),
            json!({}),
        ),
        (
            json!({"dependentSchemas": names(2_000, &json!({}))}),
            json!({}),
        ),
        (json!({"multipleOf": 5e-324}), json!(1e308)),
    ] {
        let validator = compile(&same(&schema));
        assert_eq!(compile(&schema).accepts(&value, 0), Ok(true));
        assert_eq!(
            validator.accepts(&value, 0),
            Err(BudgetExceeded),
            "{schema}"
        );
    }
}

#[track_caller]
fn refused(schema: Value, why: &str) {
    let error = Schema::from_json(schema).unwrap_err();
    assert!(error.to_string().contains(why), "{error}");
}

#[test]
fn paths_to_subschemas_are_bounded() {
    let many: Value = (0..40_000)
        .map(|index| (index.to_string(), Value::Bool(true)))
        .collect();
    refused(
        json!({"properties": {"n".repeat(100_000): {"properties": many}}}),
        "JSON Pointers to its parts",
    );
    // The same parts by other names: a tilde without an escape can be written in two ways.
    let target: Value = (0..2_000)
        .map(|index| (index.to_string(), Value::Bool(true)))
        .collect();
    let name = "~2".repeat(12);
    let reference = |index: usize| {
        let bits = (0..12).map(|bit| if index >> bit & 1 == 0 { "~2" } else { "~02" });
        json!({"$ref": format!("http://example.com#/$defs/{}", bits.collect::<String>())})
    };
    let all: Vec<_> = (0..1 << 12).map(reference).collect();
    refused(
        json!({"$id": "http://example.com", "$defs": {name: {"properties": target}}, "allOf": all}),
        "bytes when compiled",
    );
}

#[test]
fn compiled_patterns_share_one_bound() {
    let all: Vec<_> = (0..2_000)
        .map(|index| json!({"pattern": format!("(a{{90}}){{200}}{index}")}))
        .collect();
    refused(json!({"anyOf": all}), "bytes when compiled");
}

#[test]
fn nested_uris_are_bounded() {
    let inner: Value = (0..100)
        .map(|index| (index.to_string(), json!({"$id": format!("{index}")})))
        .collect();
    let base = format!("http://example.com/{}/", "a".repeat(2_000));
    refused(json!({"$id": base, "$defs": inner}), "URI");
}

/// Each reference needs all resources that have the anchor; the references share one list.
#[test]
fn dynamic_references_share_their_targets() {
    let resource = |index: usize| json!({"$id": index.to_string(), "$dynamicAnchor": "a"});
    let resources: Value = (0..9_000)
        .map(|index| (index.to_string(), resource(index)))
        .collect();
    let all = vec![json!({"$dynamicRef": "#a"}); 9_000];
    let schema =
        json!({"$dynamicAnchor": "a", "$defs": resources, "properties": {"x": {"allOf": all}}});
    assert!(Schema::from_json(schema).is_ok());
}

#[test]
fn references_are_followed_in_any_spelling() {
    let mut definitions = json!({"0": {"type": "string"}});
    for index in 1..40 {
        let next = json!({"$ref": format!("#/%24defs/{}", index - 1)});
        definitions[index.to_string()] = json!({"anyOf": [next, next]});
    }
    refused(
        json!({"$defs": definitions, "$ref": "#/%24defs/39"}),
        "expand to more than",
    );
}

/// The search of a dynamic reference takes a step for each resource on the way.
#[test]
fn dynamic_reference_search_uses_steps() {
    let resource =
        |index: usize| json!({"$id": format!("r{index}"), "$ref": format!("r{}", index + 1)});
    let mut resources: Value = (0..250)
        .map(|index| (index.to_string(), resource(index)))
        .collect();
    resources["last"] = json!({
        "$id": "r250",
        "$defs": {"it": {"$dynamicAnchor": "it"}},
        "allOf": vec![json!({"$dynamicRef": "#it"}); 10_000],
    });
    let validator = compile(&json!({"$ref": "r0", "$defs": resources}));
    assert_eq!(validator.accepts(&json!(1), 1), Err(BudgetExceeded));
    assert_eq!(validator.accepts(&json!(1), 1 << 16), Ok(true));
}

/// Building the pointer of a failure takes a step for each level.
#[test]
fn reporting_deep_failures_uses_steps() {
    let wrong = vec![json!({"type": "null"}); 30];
    let schema = json!({"items": {"$ref": "#"}, "anyOf": [{"type": "array"}, {"anyOf": wrong}, {"type": "integer"}]});
    let mut deep = Value::from(vec![1; 3_000]);
    deep.as_array_mut().unwrap().push(json!("wrong"));
    for _ in 0..100 {
        deep = json!([deep]);
    }
    let validator = compile(&schema);
    assert_eq!(validator.accepts(&deep, 1), Ok(false));
    assert!(matches!(validator.failures(&deep, 1), Err(BudgetExceeded)));
}

#[test]
fn aliased_references_are_followed_within_the_step_limit() {
    let target: Value = names(40_000, &Value::Null);
    let spelled = |index: usize| {
        let letters = (0..14).map(|bit| if index >> bit & 1 == 0 { "a" } else { "%61" });
        json!({"$ref": format!("#/$defs/{}", letters.collect::<String>())})
    };
    let all: Vec<_> = (0..1 << 14).map(spelled).collect();
    refused(
        json!({"$defs": {"a".repeat(14): {"default": target}}, "allOf": all}),
        "expand to more than",
    );
}

#[test]
fn many_required_names_are_checked_without_quadratic_work() {
    let all = names(45_000, &json!({}));
    let required: Vec<_> = all.as_object().unwrap().keys().cloned().collect();
    assert!(Schema::from_json(json!({"properties": all, "required": required})).is_ok());
}
