//! Tests that the validator agrees with another one, and that its work is bounded.

use std::thread;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::full::{dialect::Dialect, nodes::Validator, run::BudgetExceeded};

fn compile(schema: &Value) -> Validator {
    let dialect = Dialect::named(schema).unwrap();
    let dialect = dialect.unwrap_or(Dialect::DEFAULT);
    dialect.compile(schema.clone()).unwrap()
}

fn accepts(schema: &Value, instance: &Value) -> bool {
    compile(schema).accepts(instance, 0).unwrap()
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "ab", "ä", "a/b"]).prop_map(str::to_owned)
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2_i64..4).prop_map(Value::from),
        prop::sample::select(vec![0.5, 1.0, 1.5, 2.0, 0.3]).prop_map(Value::from),
        prop::sample::select(vec!["", "a", "b", "ab", "ää"]).prop_map(Value::from),
    ]
}

fn instance() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name(), inner, 0..4)
                .prop_map(|map| map.into_iter().collect()),
        ]
    })
}

fn keyword(inner: BoxedStrategy<Value>) -> impl Strategy<Value = (String, Value)> {
    let kind = prop::sample::select(vec![
        "null", "boolean", "integer", "number", "string", "array", "object",
    ]);
    let count = prop::sample::select(vec![
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
        "minContains",
        "maxContains",
    ]);
    let limit = prop::sample::select(vec![
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
    ]);
    let one = prop::sample::select(vec![
        "items",
        "additionalItems",
        "additionalProperties",
        "unevaluatedItems",
        "unevaluatedProperties",
        "unevaluatedProperties",
        "propertyNames",
        "contains",
        "not",
        "if",
        "then",
        "else",
    ]);
    let several = prop::sample::select(vec!["anyOf", "oneOf", "allOf", "prefixItems", "items"]);
    let named = prop::sample::select(vec!["properties", "properties", "dependentSchemas"]);
    let pattern = prop::sample::select(vec!["^a", "b$", "ä+", "^(?!a)", "[ab]{2}", "."]);
    let names = prop::collection::btree_set(name(), 0..3)
        .prop_map(|names| json!(names))
        .boxed();
    let pair = |(name, value): (&str, Value)| (name.to_owned(), value);
    let own = |name: &'static str| move |value: Value| (name.to_owned(), value);
    prop_oneof![
        3 => kind.prop_map(Value::from).prop_map(own("type")),
        1 => prop::collection::vec(scalar(), 1..4).prop_map(Value::from).prop_map(own("enum")),
        1 => instance().prop_map(own("const")),
        2 => (count, (0..3).prop_map(Value::from)).prop_map(pair),
        2 => (limit, (-1..3).prop_map(Value::from)).prop_map(pair),
        1 => prop::sample::select(vec![0.1, 0.5, 2.0]).prop_map(Value::from).prop_map(own("multipleOf")),
        1 => pattern.clone().prop_map(Value::from).prop_map(own("pattern")),
        1 => any::<bool>().prop_map(Value::from).prop_map(own("uniqueItems")),
        1 => names.clone().prop_map(own("required")),
        1 => prop::collection::btree_map(name(), names, 1..3)
            .prop_map(|map| json!(map)).prop_map(own("dependentRequired")),
        5 => (one, inner.clone()).prop_map(pair),
        4 => (several, prop::collection::vec(inner.clone(), 1..4).prop_map(Value::from)).prop_map(pair),
        4 => (named, prop::collection::btree_map(name(), inner.clone(), 1..4).prop_map(|map| json!(map)))
            .prop_map(pair),
        1 => prop::collection::btree_map(pattern, inner, 1..3)
            .prop_map(|map| json!(map)).prop_map(own("patternProperties")),
        1 => prop::sample::select(vec!["#/$defs/one", "#/$defs/two", "#three"])
            .prop_map(Value::from).prop_map(own("$ref")),
    ]
}

fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        Just(json!({"type": "integer"})),
        Just(json!({"type": "string"})),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop::collection::vec(keyword(inner.boxed()), 0..6)
            .prop_map(|all| all.into_iter().collect())
    })
}

const DIALECTS: [&str; 5] = [
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-04/schema#",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// If both validators understand a schema, their verdicts agree.
    #[test]
    fn validator_agrees_with_another_validator(
        schema in schema(),
        one in Just(json!({"properties": {"a": {"type": "integer"}}})),
        two in Just(json!({"items": {"minimum": 1}, "required": ["b"]})),
        dialect in prop::sample::select(DIALECTS.to_vec()),
        instances in prop::collection::vec(instance(), 1..8),
    ) {
        let mut schema = schema;
        if let Some(map) = schema.as_object_mut() {
            map.insert("$schema".into(), dialect.into());
            map.insert("$defs".into(), json!({
                "one": one,
                "two": two,
                "three": {"$anchor": "three", "$id": "#three", "maxItems": 2, "unevaluatedProperties": false},
            }));
            if dialect.contains("20") {
                map["$defs"]["three"].as_object_mut().unwrap().remove("$id");
            }
        }
        let text = schema.to_string();
        // In that dialect, items that match `contains` are not evaluated. The other validator disagrees.
        let is_disputed = dialect.contains("2019") && text.contains("contains") && text.contains("unevaluatedItems");
        prop_assume!(!is_disputed);
        let other = jsonschema::options().should_validate_formats(false).build(&schema);
        let Ok(other) = other else { return Ok(()) };
        let named = Dialect::named(&schema).unwrap().unwrap_or(Dialect::DEFAULT);
        prop_assert!(named.validator().accepts(&schema, 10_000).unwrap(), "{schema}");
        let ours = named.compile(schema.clone());
        prop_assert!(ours.is_ok(), "{ours:?} {schema}");
        let ours = ours.unwrap();
        for instance in instances {
            let verdict = ours.accepts(&instance, 0).unwrap();
            prop_assert_eq!(verdict, other.is_valid(&instance), "{} {}", schema, instance);
            let failures = ours.failures(&instance, 0).unwrap();
            prop_assert_eq!(verdict, failures.is_empty(), "{} {}", schema, instance);
        }
    }
}

#[test]
fn unresolvable_schemas_fail_without_a_crash() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        json!({"allOf": [{"not": {"$ref": "#"}}]}),
        json!({"$dynamicRef": "#a", "$dynamicAnchor": "a"}),
        json!({"unevaluatedProperties": {"$ref": "#"}, "anyOf": [{"$ref": "#"}]}),
    ] {
        let validator = compile(&schema);
        for instance in [json!(1), json!({"a": {}})] {
            let verdict = validator.accepts(&instance, 10);
            assert!(matches!(verdict, Err(BudgetExceeded)), "{schema}");
            assert!(validator.failures(&instance, 10).is_err(), "{schema}");
        }
    }
}

/// Each level of the value doubles the work, so an unbounded validator would never finish.
#[test]
fn work_and_stack_are_bounded() {
    let schema = json!({"anyOf": [{"items": {"$ref": "#"}, "minItems": 1}, {"items": {"$ref": "#"}, "minItems": 1}]});
    let mut deep = json!([]);
    for _ in 0..120 {
        deep = json!([deep]);
    }
    let small = thread::Builder::new().stack_size(2 << 20);
    let run = small.spawn(move || {
        let chain = json!({"items": {"allOf": [{"anyOf": [{"$ref": "#"}]}]}});
        assert!(accepts(&chain, &deep), "what is merely deep is fine");
        compile(&schema).accepts(&deep, 242).map_err(|_| ())
    });
    assert_eq!(run.unwrap().join().unwrap(), Err(()));
}

#[test]
fn official_schemas_are_part_of_every_schema() {
    for dialect in DIALECTS {
        let schema = json!({"type": "object", "properties": {"schema": {"$ref": dialect}}});
        assert!(
            accepts(&schema, &json!({"schema": {"type": "string"}})),
            "{dialect}"
        );
        assert!(
            !accepts(
                &schema,
                &json!({"schema": {"properties": {"a": {"type": 7}}}})
            ),
            "{dialect}"
        );
    }
}

#[test]
fn references_resolve_within_their_schema_resource() {
    let schema = json!({
        "$id": "http://example.com/root.json",
        "$defs": {
            "a": {"$id": "dir/a.json", "$anchor": "here", "type": "integer", "$defs": {"b": {"$id": "b.json", "type": "string"}}},
            "of an unknown keyword": {"x-other": {"$id": "http://example.com/no.json", "$anchor": "no"}},
        },
        "properties": {
            "by_name": {"$ref": "dir/a.json"},
            "by_anchor": {"$ref": "/dir/a.json#here"},
            "within": {"$ref": "dir/b.json"},
            "by_pointer": {"$ref": "#/$defs/a/$defs/b"},
        },
    });
    assert!(accepts(
        &schema,
        &json!({"by_name": 1, "by_anchor": 1, "within": "", "by_pointer": ""})
    ));
    for wrong in ["by_name", "by_anchor", "within", "by_pointer"] {
        assert!(!accepts(&schema, &json!({wrong: null})), "{wrong}");
    }
    let mut lost = schema;
    lost["$ref"] = "no.json".into();
    assert!(Dialect::DEFAULT.compile(lost).is_err());
}

#[test]
fn dynamic_reference_resolves_from_outermost_scope() {
    let tree = json!({
        "$id": "http://example.com/strict",
        "$dynamicAnchor": "node",
        "$ref": "tree",
        "unevaluatedProperties": false,
        "$defs": {"tree": {
            "$id": "tree",
            "$dynamicAnchor": "node",
            "properties": {"children": {"items": {"$dynamicRef": "#node"}}},
        }},
    });
    assert!(accepts(&tree, &json!({"children": [{"children": []}]})));
    assert!(!accepts(&tree, &json!({"children": [{"daat": 1}]})));
}
