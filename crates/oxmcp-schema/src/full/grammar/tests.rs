//! Tests that the grammar agrees with the metaschemas, which another validator provides.

use std::{collections::HashMap, sync::LazyLock};

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::full::{
    dialect::Dialect,
    grammar::table::{GRAMMAR, KINDS, Shape},
    nodes::Validator,
};

const DIALECTS: [Dialect; 5] = [
    Dialect::Draft04,
    Dialect::Draft06,
    Dialect::Draft07,
    Dialect::Draft201909,
    Dialect::Draft202012,
];

/// Schemas that refer to a metaschema: to the whole, to a part, and as an extension.
fn references(dialect: Dialect) -> Vec<Value> {
    let uri = dialect.uri();
    let mut all = vec![
        json!({"$ref": uri}),
        json!({"items": {"$ref": uri}, "properties": {"not": {"$ref": format!("{uri}#")}}}),
        json!({"anyOf": [{"$ref": uri}, {"type": "string"}]}),
    ];
    if dialect <= Dialect::Draft07 {
        let count = if dialect == Dialect::Draft04 {
            "definitions/positiveInteger"
        } else {
            "definitions/nonNegativeInteger"
        };
        for part in [count, "definitions/schemaArray", "definitions/simpleTypes"] {
            all.push(json!({"$ref": format!("{uri}#/{part}")}));
        }
        for part in [
            "definitions/stringArray",
            "properties/items",
            "properties/type",
        ] {
            all.push(json!({"items": {"$ref": format!("{uri}#/{part}")}}));
        }
    } else {
        all.push(json!({"$ref": uri, "unevaluatedProperties": false}));
        all.push(json!({
            "$id": "http://example.com/extended",
            "$dynamicAnchor": "meta",
            "$recursiveAnchor": true,
            "$ref": uri,
            "properties": {"x-other": {"type": "integer"}},
            "required": ["type"],
        }));
        if dialect == Dialect::Draft202012 {
            all[4].as_object_mut().unwrap().remove("$recursiveAnchor");
            all.push(json!({"items": {"$ref": format!("{uri}#meta")}}));
        }
    }
    for schema in &mut all {
        schema["$schema"] = uri.into();
    }
    all
}

type Both = (Validator, jsonschema::Validator);

static BOTH: LazyLock<HashMap<&str, Vec<Both>>> = LazyLock::new(|| {
    let compile = |dialect: Dialect, schema: &Value| {
        let options = jsonschema::options().should_validate_formats(false);
        let ours = dialect.compile(schema.clone());
        (ours.unwrap(), options.build(schema).unwrap())
    };
    let each = DIALECTS.into_iter().map(|dialect| {
        let all = references(dialect);
        let all = all.iter().map(|schema| compile(dialect, schema));
        (dialect.uri(), all.collect())
    });
    each.collect()
});

fn scalar() -> impl Strategy<Value = Value> {
    let numbers = [
        json!(-1),
        json!(0),
        json!(1),
        json!(1.0),
        json!(0.5),
        json!(1e30),
    ];
    let texts = [
        "", "a", "_a", "a:b", "a/b", "#", "a#", "a#b", "string", "integer", "strnig",
    ];
    prop_oneof![
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
        prop::sample::select(numbers.to_vec()),
        prop::sample::select(texts.to_vec()).prop_map(Value::from),
    ]
}

/// A value that may or may not have this form.
fn value(shape: Shape, inner: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    let name = prop::sample::select(vec!["a", "b", "c", "type"]).prop_map(str::to_owned);
    let names = prop::collection::vec(name.clone(), 0..3)
        .prop_map(|all| json!(all))
        .boxed();
    let kinds = prop::sample::select(KINDS.to_vec()).prop_map(Value::from);
    let several = |of: BoxedStrategy<Value>| prop::collection::vec(of, 0..4).prop_map(Value::from);
    let named = |of: BoxedStrategy<Value>| {
        prop::collection::btree_map(name.clone(), of, 0..3)
            .prop_map(|map| json!(map))
            .boxed()
    };
    let right = match shape {
        Shape::Kind | Shape::Kinds => prop_oneof![kinds.clone(), several(kinds.boxed())].boxed(),
        Shape::Names => names,
        Shape::NamedNames => named(names),
        Shape::NamedFlags => named(any::<bool>().prop_map(Value::from).boxed()),
        Shape::Schema => inner.clone(),
        Shape::SchemaOrFlag | Shape::SchemaOrSchemas | Shape::Schemas => {
            prop_oneof![inner.clone(), several(inner.clone())].boxed()
        }
        Shape::NamedSchemas => named(inner.clone()),
        Shape::Dependencies => named(prop_oneof![inner.clone(), names].boxed()),
        Shape::Flag => any::<bool>().prop_map(Value::from).boxed(),
        _ => scalar().boxed(),
    };
    let wrong = prop_oneof![
        scalar(),
        inner.clone(),
        several(scalar().boxed()),
        named(inner)
    ];
    prop_oneof![9 => right, 1 => wrong].boxed()
}

fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        3 => Just(json!({})),
        1 => Just(json!({"type": "string"})),
        1 => any::<bool>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 3, |inner| {
        let inner = inner.boxed();
        let keyword = prop::sample::select(GRAMMAR.to_vec());
        let keyword = keyword.prop_flat_map(move |(.., shape, names)| {
            let name = prop::sample::select(names.to_vec());
            let name = prop_oneof![30 => name, 1 => Just("x-other")];
            (name.prop_map(str::to_owned), value(shape, inner.clone()))
        });
        prop::collection::vec(keyword, 0..4).prop_map(|all| all.into_iter().collect())
    })
}

/// Each keyword with each type of value: random tests do not hit every row of the table.
#[test]
fn each_keyword_accepts_its_allowed_types() {
    let mut values = vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(-0.0),
        json!(0),
        json!(1),
        json!(1.0),
        json!(0.5),
        json!(u64::MAX),
        json!(1e30),
        json!(""),
        json!("a"),
        json!("_a"),
        json!("a:b"),
        json!("a.-_1"),
        json!("ä"),
        json!("1a"),
        json!("a#"),
        json!("a#b"),
        json!({}),
        json!({"x-other": 7}),
        json!({"type": 7}),
        json!({"type": "string"}),
    ];
    values.extend(KINDS.map(Value::from));
    values.extend(values.clone().into_iter().map(|value| json!([value])));
    values.extend(values.clone().into_iter().map(|value| json!({"a": value})));
    values.extend([
        json!([]),
        json!(["a", "b"]),
        json!(["a", "a"]),
        json!([{}, {}]),
        json!([0, 0.0]),
        json!(["string", "null"]),
        json!(["string", "string"]),
        json!([{}, 7]),
        json!({"a": ["a", "b"], "b": []}),
        json!({"a": []}),
        json!({"a": ["a", "a"]}),
    ]);
    let names = GRAMMAR.iter().flat_map(|(.., names)| names.iter());
    for name in names.chain(&["x-other"]) {
        for (value, dialect) in values
            .iter()
            .flat_map(|value| DIALECTS.map(|it| (value, it)))
        {
            let (ours, theirs) = &BOTH[dialect.uri()][0];
            let schema = json!({*name: value, "minimum": 0, "maximum": 1});
            let verdict = ours.accepts(&schema, 0).unwrap();
            assert_eq!(verdict, theirs.is_valid(&schema), "{dialect:?} {schema}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The metaschemas define what a schema is; another validator provides them.
    #[test]
    fn grammar_agrees_with_the_metaschemas(schema in schema()) {
        for dialect in DIALECTS {
            for (place, (ours, theirs)) in BOTH[dialect.uri()].iter().enumerate() {
                for value in [&schema, &json!([schema]), &json!({"not": schema})] {
                    let verdict = ours.accepts(value, 0).unwrap();
                    let expected = theirs.is_valid(value);
                    prop_assert_eq!(verdict, expected, "{:?} {} {}", dialect, place, value);
                    let failures = ours.failures(value, 0).unwrap();
                    prop_assert_eq!(verdict, failures.is_empty(), "{:?} {}", dialect, value);
                }
            }
        }
    }
}
