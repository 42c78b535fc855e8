//! The listed form of schemas, and the rules of hosts.

use std::collections::{BTreeMap, HashMap};

use oxmcp_schema::{
    IntoSchema, JsonSchema, Schema,
    internal::{SchemaFinding, check_for_hosts},
};
use proptest::{prelude::*, test_runner::TestRunner};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::to_raw_value};

fn listed(schema: &Schema) -> Value {
    serde_json::from_str(schema.listed().get()).unwrap()
}

fn findings(schema: &Value) -> Vec<String> {
    let line = |it: &SchemaFinding| format!("{} {}", it.pointer, it.id);
    check_for_hosts(schema).iter().map(line).collect()
}

/// A shape.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "kind")]
enum Shape {
    /// round
    Circle {
        /// in millimetres
        size: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    Square {
        /// the side
        size: f64,
        at: String,
    },
    Dot {
        at: u8,
    },
    Nothing,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
enum External {
    /// a number
    New(i32),
    Named {
        z: bool,
    },
    Tuple(i32, String),
    /// no data
    Unit,
    Other,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "t", content = "c")]
enum Adjacent {
    Number(i32),
    Text(String),
    None,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
enum Untagged {
    ById {
        id: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        exact: Option<bool>,
    },
    ByName {
        name: String,
    },
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Closed {
    z: i32,
    #[serde(flatten)]
    shape: Shape,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
struct Flat {
    z: i32,
    #[serde(flatten)]
    shape: Shape,
    #[serde(flatten)]
    by: Untagged,
    #[serde(skip_serializing_if = "Option::is_none")]
    a: Option<Adjacent>,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
struct FlatOption {
    z: i32,
    #[serde(flatten)]
    shape: Option<Shape>,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
struct FlatMap {
    z: i32,
    #[serde(flatten)]
    rest: HashMap<String, u8>,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "op")]
enum Recursive {
    Leaf { value: i32 },
    Add { left: Box<Self>, right: Box<Self> },
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
enum RecursiveExternal {
    Zero,
    Succ(Box<Self>),
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
struct Generic<T> {
    pair: (T, i32),
    list: Vec<T>,
    tuple: (i32, String, Option<T>),
    map: BTreeMap<u8, T>,
    any: Value,
    items: Vec<Value>,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
struct Empty {}

#[test]
fn root_alternatives_are_merged() {
    insta::assert_snapshot!(Schema::of::<Shape>().listed().get(), @r#"{"type":"object","description":"A shape.","properties":{"kind":{"type":"string","description":"The other properties depend on it:\n- \"Circle\": round; \"size\", \"note\" (optional)\n- \"Square\": \"size\", \"at\"\n- \"Dot\": \"at\"\n- \"Nothing\": no other properties","enum":["Circle","Square","Dot","Nothing"]},"size":{"type":"number","description":"if kind is \"Circle\": in millimetres\nif kind is \"Square\": the side"},"note":{"type":"string"},"at":{"anyOf":[{"type":"string","description":"if kind is \"Square\""},{"type":"integer","description":"if kind is \"Dot\"","maximum":255,"minimum":0}]}},"required":["kind"]}"#);
    insta::assert_snapshot!(Schema::of::<External>().listed().get(), @r#"{"type":"object","description":"Give exactly one of these properties: \"Other\", \"New\", \"Named\", \"Tuple\", \"Unit\".","additionalProperties":false,"properties":{"Other":{"type":"null"},"New":{"type":"integer","description":"a number"},"Named":{"type":"object","properties":{"z":{"type":"boolean"}},"required":["z"]},"Tuple":{"type":"array","items":{"anyOf":[{"type":"integer"},{"type":"string"}]},"maxItems":2,"minItems":2,"prefixItems":[{"type":"integer"},{"type":"string"}]},"Unit":{"type":"null","description":"no data"}}}"#);
    insta::assert_snapshot!(Schema::of::<Adjacent>().listed().get(), @r#"{"type":"object","properties":{"t":{"type":"string","description":"The other properties depend on it:\n- \"Number\": \"c\"\n- \"Text\": \"c\"\n- \"None\": no other properties","enum":["Number","Text","None"]},"c":{"anyOf":[{"type":"integer","description":"if t is \"Number\""},{"type":"string","description":"if t is \"Text\""}]}},"required":["t"]}"#);
    insta::assert_snapshot!(Schema::of::<Untagged>().listed().get(), @r#"{"type":"object","description":"Give the properties of exactly one of these lines:\n- \"id\", \"exact\" (optional)\n- \"name\"","properties":{"id":{"type":"integer","minimum":0},"exact":{"type":"boolean"},"name":{"type":"string"}}}"#);
    insta::assert_snapshot!(Schema::of::<Closed>().listed().get(), @r#"{"type":"object","description":"A shape.","additionalProperties":false,"properties":{"z":{"type":"integer"},"kind":{"type":"string","description":"The other properties depend on it:\n- \"Circle\": round; \"size\", \"note\" (optional)\n- \"Square\": \"size\", \"at\"\n- \"Dot\": \"at\"\n- \"Nothing\": no other properties","enum":["Circle","Square","Dot","Nothing"]},"size":{"type":"number","description":"if kind is \"Circle\": in millimetres\nif kind is \"Square\": the side"},"note":{"type":"string"},"at":{"anyOf":[{"type":"string","description":"if kind is \"Square\""},{"type":"integer","description":"if kind is \"Dot\"","maximum":255,"minimum":0}]}},"required":["z","kind"]}"#);
    insta::assert_snapshot!(Schema::of::<Flat>().listed().get(), @r#"{"type":"object","description":"A shape.\n\nGive the properties of exactly one of these lines:\n- \"id\", \"exact\" (optional)\n- \"name\"","properties":{"z":{"type":"integer"},"a":{"anyOf":[{"type":"object","properties":{"t":{"type":"string","enum":["Number"]},"c":{"type":"integer"}},"required":["t","c"]},{"type":"object","properties":{"t":{"type":"string","enum":["Text"]},"c":{"type":"string"}},"required":["t","c"]},{"type":"object","properties":{"t":{"type":"string","enum":["None"]}},"required":["t"]}]},"id":{"type":"integer","minimum":0},"exact":{"type":"boolean"},"name":{"type":"string"},"kind":{"type":"string","description":"The other properties depend on it:\n- \"Circle\": round; \"size\", \"note\" (optional)\n- \"Square\": \"size\", \"at\"\n- \"Dot\": \"at\"\n- \"Nothing\": no other properties","enum":["Circle","Square","Dot","Nothing"]},"size":{"type":"number","description":"if kind is \"Circle\": in millimetres\nif kind is \"Square\": the side"},"note":{"type":"string"},"at":{"anyOf":[{"type":"string","description":"if kind is \"Square\""},{"type":"integer","description":"if kind is \"Dot\"","maximum":255,"minimum":0}]}},"required":["z","kind"]}"#);
    insta::assert_snapshot!(Schema::of::<FlatOption>().listed().get(), @r#"{"type":"object","description":"A shape.\n\nGive the properties of exactly one of these lines:\n- \"kind\", \"size\" (optional), \"note\" (optional), \"at\" (optional)\n- no other properties","properties":{"z":{"type":"integer"},"kind":{"type":"string","description":"The other properties depend on it:\n- \"Circle\": round; \"size\", \"note\" (optional)\n- \"Square\": \"size\", \"at\"\n- \"Dot\": \"at\"\n- \"Nothing\": no other properties","enum":["Circle","Square","Dot","Nothing"]},"size":{"type":"number","description":"if kind is \"Circle\": in millimetres\nif kind is \"Square\": the side"},"note":{"type":"string"},"at":{"anyOf":[{"type":"string","description":"if kind is \"Square\""},{"type":"integer","description":"if kind is \"Dot\"","maximum":255,"minimum":0}]}},"required":["z"]}"#);
    insta::assert_snapshot!(Schema::of::<Recursive>().listed().get(), @r##"{"type":"object","properties":{"op":{"type":"string","description":"The other properties depend on it:\n- \"Leaf\": \"value\"\n- \"Add\": \"left\", \"right\"","enum":["Leaf","Add"]},"value":{"type":"integer"},"left":{"$ref":"#/$defs/root"},"right":{"$ref":"#/$defs/root"}},"required":["op"],"$defs":{"root":{"type":"object","anyOf":[{"type":"object","properties":{"op":{"type":"string","enum":["Leaf"]},"value":{"type":"integer"}},"required":["op","value"]},{"type":"object","properties":{"op":{"type":"string","enum":["Add"]},"left":{"$ref":"#/$defs/root"},"right":{"$ref":"#/$defs/root"}},"required":["op","left","right"]}]}}}"##);
    insta::assert_snapshot!(Schema::of::<RecursiveExternal>().listed().get(), @r##"{"type":"object","description":"Give exactly one of these properties: \"Zero\", \"Succ\".","additionalProperties":false,"properties":{"Zero":{"type":"null"},"Succ":{"$ref":"#/$defs/root"}},"$defs":{"root":{"anyOf":[{"type":"string","enum":["Zero"]},{"type":"object","additionalProperties":false,"properties":{"Succ":{"$ref":"#/$defs/root"}},"required":["Succ"]}]}}}"##);
}

#[test]
fn written_schemas_change_only_where_hosts_refuse() {
    let table = [
        // Byte for byte, since nothing has to change.
        (
            r#"{ "properties": {"b": {"const": 1}, "a": {}}, "type": "object" }"#,
            r#"{ "properties": {"b": {"const": 1}, "a": {}}, "type": "object" }"#,
        ),
        (
            r#"{"type":"object"}"#,
            r#"{"type":"object","properties":{}}"#,
        ),
        (
            r#"{"type":"object","properties":{"z":{"type":"array"},"a":{"type":"array","prefixItems":[{"type":"string"}]}}}"#,
            r#"{"type":"object","properties":{"z":{"type":"array","items":{}},"a":{"type":"array","items":{},"prefixItems":[{"type":"string"}]}}}"#,
        ),
        (
            r##"{"type":"object","oneOf":[{"$ref":"#/$defs/B"},{"$ref":"#/$defs/A"}],"$defs":{"A":{"properties":{"x":{"type":"string"},"y":{}},"required":["x","y"]},"B":{"properties":{"x":{"type":"string"}},"required":["x"],"additionalProperties":false}}}"##,
            r#"{"type":"object","description":"Give the properties of exactly one of these lines:\n- \"x\"\n- \"x\", \"y\"","properties":{"x":{"type":"string"},"y":{}},"required":["x"],"$defs":{"A":{"properties":{"x":{"type":"string"},"y":{}},"required":["x","y"]},"B":{"additionalProperties":false,"properties":{"x":{"type":"string"}},"required":["x"]}}}"#,
        ),
        (
            r#"{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"string"}},"additionalProperties":false,"allOf":[{"anyOf":[{"required":["a"]},{"required":["b"]}]}],"not":{"required":["a","b"]}}"#,
            "",
        ),
        // No form is an object, so that nothing can be merged.
        (
            r#"{"type":"object","anyOf":[{"type":"string"}]}"#,
            r#"{"type":"object","anyOf":[{"type":"string"}],"properties":{}}"#,
        ),
    ];
    for (written, expected) in table {
        let schema = written.into_schema().unwrap();
        let listed = schema.listed();
        if expected.is_empty() {
            insta::assert_snapshot!(listed.get(), @r#"{"type":"object","description":"Give the properties of exactly one of these lines:\n- \"a\"\n- \"b\"","additionalProperties":false,"properties":{"b":{"type":"string"},"a":{"type":"string"}}}"#);
        } else {
            assert_eq!(listed.get(), expected);
        }
        assert_eq!(schema.as_raw().get(), written);
    }
}

/// Checks that the listed schema of a type has no finding, and accepts the values of the type as the exact one does.
fn lists_portably<T>(values: impl Strategy<Value = T>)
where
    T: JsonSchema + Serialize + for<'de> Deserialize<'de> + std::fmt::Debug,
{
    let exact = Schema::of::<T>();
    let listed = listed(&exact);
    assert_eq!(findings(&listed), [""; 0], "{listed}");
    let listed = Schema::from_json(listed).unwrap();
    let check = |value: T| {
        let json = to_raw_value(&value).unwrap();
        prop_assert_eq!(exact.validate(&json), Ok(()));
        prop_assert_eq!(listed.validate(&json), Ok(()));
        prop_assert!(serde_json::from_str::<T>(json.get()).is_ok());
        Ok(())
    };
    TestRunner::default().run(&values, check).unwrap();
}

fn shape() -> impl Strategy<Value = Shape> + Clone {
    let size = -1e9..1e9_f64;
    prop_oneof![
        (size.clone(), any::<Option<String>>())
            .prop_map(|(size, note)| Shape::Circle { size, note }),
        (size, any::<String>()).prop_map(|(size, at)| Shape::Square { size, at }),
        any::<u8>().prop_map(|at| Shape::Dot { at }),
        Just(Shape::Nothing),
    ]
}

fn untagged() -> impl Strategy<Value = Untagged> + Clone {
    prop_oneof![
        any::<(u32, Option<bool>)>().prop_map(|(id, exact)| Untagged::ById { id, exact }),
        any::<String>().prop_map(|name| Untagged::ByName { name }),
    ]
}

fn adjacent() -> impl Strategy<Value = Adjacent> + Clone {
    prop_oneof![
        any::<i32>().prop_map(Adjacent::Number),
        any::<String>().prop_map(Adjacent::Text),
        Just(Adjacent::None),
    ]
}

#[test]
fn listed_schemas_of_types_are_portable() {
    lists_portably(shape());
    lists_portably(adjacent());
    lists_portably(untagged());
    let all = (
        any::<i32>(),
        shape(),
        untagged(),
        proptest::option::of(adjacent()),
    );
    lists_portably(all.prop_map(|(z, shape, by, a)| Flat { z, shape, by, a }));
    let optional = (any::<i32>(), proptest::option::of(shape()));
    lists_portably(optional.prop_map(|(z, shape)| FlatOption { z, shape }));
    let rest = proptest::collection::hash_map("[a-y]{1,9}", any::<u8>(), 0..4);
    lists_portably((any::<i32>(), rest).prop_map(|(z, rest)| FlatMap { z, rest }));
    let leaf = || any::<i32>().prop_map(|value| Recursive::Leaf { value });
    lists_portably(prop_oneof![
        leaf(),
        (leaf(), leaf()).prop_map(|(left, right)| Recursive::Add {
            left: Box::new(left),
            right: Box::new(right),
        }),
    ]);
    let generic = any::<(bool, i32, Vec<bool>, String, BTreeMap<u8, bool>)>();
    lists_portably(generic.prop_map(|(one, number, list, text, map)| Generic {
        pair: (one, number),
        list,
        tuple: (number, text.clone(), Some(one)),
        map,
        any: json!(text),
        items: vec![json!(number), json!(null)],
    }));
    lists_portably(Just(Empty {}));
    lists_portably(prop_oneof![
        any::<i32>().prop_map(External::New),
        any::<bool>().prop_map(|z| External::Named { z }),
        any::<(i32, String)>().prop_map(|(n, text)| External::Tuple(n, text)),
    ]);
    lists_portably(Just(RecursiveExternal::Succ(Box::new(
        RecursiveExternal::Zero,
    ))));
}

#[test]
fn unit_variants_can_be_arguments() {
    let schema = Schema::of::<External>();
    for (json, is_valid) in [
        (json!({"Unit": null}), true),
        (json!({"Unit": 1}), false),
        (json!({"New": null}), false),
    ] {
        assert_eq!(
            schema.validate(&to_raw_value(&json).unwrap()).is_ok(),
            is_valid,
            "{json}"
        );
        assert_eq!(External::deserialize(json).is_ok(), is_valid);
    }
}

#[test]
fn host_rules_find_unsupported_schemas() {
    let table = [
        (json!({"type": "object", "properties": {}}), vec![]),
        (json!({"type": "object"}), vec![" no-properties"]),
        (json!({"properties": {}}), vec![" root-not-object"]),
        (
            json!({"type": "object", "properties": {}, "anyOf": [{}]}),
            vec!["/anyOf root-union"],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "array"}, "b": {"prefixItems": [{}]}, "c": true}}),
            vec![
                "/properties/a no-items",
                "/properties/b no-items",
                "/properties/c boolean-schema",
            ],
        ),
        (
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"$ref": "#/$defs/B"}}, "$defs": {"A": {}, "B": {"properties": {"b": {"$ref": "#/$defs/B"}}}}}),
            vec!["/properties/a/$ref reference"],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": ["string", "null"]}, "b": {"const": 1}, "c": {"nullable": true}, "d": {"exclusiveMinimum": true}}}),
            vec![
                "/properties/a/type type-array",
                "/properties/b/const const",
                "/properties/c/nullable nullable",
                "/properties/d/exclusiveMinimum boolean-limit",
            ],
        ),
        (
            json!({"type": "object", "properties": {"a": {"format": "int64"}, "b": {"enum": ["", "x"]}, "c": {"enum": []}, "d e": {}, "x/y": {}}}),
            vec![
                "/properties/d e property-name",
                "/properties/x~1y property-name",
                "/properties/a/format unknown-format",
                "/properties/b/enum empty-enum-value",
                "/properties/c/enum empty-enum",
            ],
        ),
        (
            json!({"type": "object", "properties": {}, "if": {}, "then": {}}),
            vec!["/if condition", "/then condition"],
        ),
    ];
    for (schema, expected) in table {
        assert_eq!(findings(&schema), expected, "{schema}");
    }
    let deep = (0..12).fold(
        json!({}),
        |inner, _| json!({"type": "object", "properties": {"a": inner}}),
    );
    assert_eq!(findings(&deep).len(), 1);
    let many: serde_json::Map<_, _> = (0..500).map(|n| (n.to_string(), json!(true))).collect();
    assert_eq!(
        findings(&json!({"type": "object", "properties": many})).len(),
        64
    );
}
