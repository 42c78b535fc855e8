//! Schemas from types (rows M5 and M6): the crate's derive, seen from another crate, and portability.
#![expect(dead_code, reason = "only the schemas of these types are wanted")]

use std::{collections::BTreeMap, marker::PhantomData, net::IpAddr, time::Duration};

use oxmcp::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::to_raw_value};

fn input<T: JsonSchema>() -> String {
    Schema::of::<T>().as_raw().get().to_owned()
}

fn accepts<T: JsonSchema>(value: Value) -> bool {
    Schema::of::<T>()
        .validate(&to_raw_value(&value).unwrap())
        .is_ok()
}

/// Two numbers
#[derive(Deserialize, JsonSchema)]
struct Pair {
    /// the dividend
    b: f64,
    /// the divisor
    a: f64,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Unit {
    DegreesCelsius,
    Fahrenheit,
}

#[derive(Deserialize, JsonSchema)]
struct Tree {
    children: Vec<Tree>,
    next: Option<Box<Self>>,
}

#[test]
fn m6_fields_are_properties_in_their_order() {
    insta::assert_snapshot!(input::<Pair>(), @"");
}

#[test]
fn m6_absent_skipped_and_defaulted_fields() {
    fn five() -> u32 {
        5
    }
    #[derive(Deserialize, Serialize, JsonSchema)]
    #[serde(rename_all = "camelCase")]
    struct Query {
        search_text: String,
        #[serde(default = "five")]
        limit: u32,
        #[serde(default)]
        tags: Vec<String>,
        unit: Option<Unit>,
        #[serde(skip)]
        secret: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    }
    insta::assert_snapshot!(input::<Query>(), @"");
    insta::assert_snapshot!(Schema::of_output::<Query>().as_raw().get(), @"");
}

#[test]
fn m6_null_for_an_option_is_tolerated_and_not_advertised() {
    #[derive(Deserialize, JsonSchema)]
    struct Options {
        number: Option<i32>,
        unit: Option<Unit>,
        pair: Option<Pair>,
        tree: Option<Tree>,
        either: Option<Either>,
        list: Option<Vec<Option<i32>>>,
    }
    #[derive(Deserialize, JsonSchema)]
    #[serde(untagged)]
    enum Either {
        Text(String),
        Flag(bool),
    }
    let text = input::<Options>();
    assert!(
        !text.contains("[\"integer\",\"null\"]") && !text.contains("[\"null\""),
        "{text}"
    );
    let all_null = json!({"number": null, "unit": null, "pair": null, "tree": null, "either": null, "list": null});
    assert!(accepts::<Options>(all_null));
    assert!(accepts::<Options>(json!({})));
    assert!(accepts::<Options>(
        json!({"number": 1, "either": true, "tree": {"children": []}, "list": [1, null]})
    ));
    assert!(!accepts::<Options>(json!({"number": "1"})));
    assert!(!accepts::<Options>(json!({"unit": "kelvin"})));
    let value = Schema::of::<Options>().to_value();
    assert_eq!(
        value["properties"]["unit"],
        json!({"type": "string", "enum": ["degrees_celsius", "fahrenheit"]})
    );
    assert_eq!(
        value["properties"]["either"],
        json!({"anyOf": [{"type": "string"}, {"type": "boolean"}]})
    );
}

#[test]
fn nested_types_are_inlined_and_recursive_ones_are_references() {
    #[derive(Deserialize, JsonSchema)]
    struct Nested {
        one: Pair,
        two: Vec<BTreeMap<String, Pair>>,
    }
    assert!(!input::<Nested>().contains("$ref"));
    insta::assert_snapshot!(input::<Tree>(), @"");
    assert!(accepts::<Tree>(
        json!({"children": [{"children": []}], "next": {"children": []}})
    ));
    assert!(!accepts::<Tree>(json!({"children": [{"children": [1]}]})));
}

#[test]
fn formats_of_no_specification_are_dropped() {
    #[derive(Deserialize, JsonSchema)]
    struct Formats {
        a: u8,
        b: i64,
        c: f32,
        d: usize,
        e: IpAddr,
        f: char,
        g: Duration,
        #[schemars(extend("format" = "uuid"))]
        h: String,
        any: Value,
    }
    insta::assert_snapshot!(input::<Formats>(), @"");
}

#[test]
fn enums_in_every_representation() {
    /// How hot
    #[derive(Deserialize, JsonSchema)]
    enum Described {
        /// boiling
        Hot,
        /// freezing
        Cold,
    }
    #[derive(Deserialize, JsonSchema)]
    enum External {
        Unit,
        New(i32),
        Named { z: bool, a: bool },
        Tuple(i32, String),
    }
    #[derive(Deserialize, JsonSchema)]
    #[serde(tag = "kind")]
    enum Internal {
        Circle { r: f64, a: Option<String> },
        Nothing,
    }
    #[derive(Deserialize, JsonSchema)]
    #[serde(tag = "t", content = "c")]
    enum Adjacent {
        Number(i32),
        Text(String),
    }
    insta::assert_snapshot!(input::<Described>(), @"");
    insta::assert_snapshot!(input::<External>(), @"");
    insta::assert_snapshot!(input::<Internal>(), @"");
    insta::assert_snapshot!(input::<Adjacent>(), @"");
    assert!(accepts::<Internal>(json!({"kind": "Nothing"})));
    assert!(!accepts::<Internal>(json!({"kind": "Circle"})));
}

#[test]
fn structs_of_every_form() {
    #[derive(Deserialize, JsonSchema)]
    struct Unit;
    #[derive(Deserialize, JsonSchema)]
    struct Empty {}
    #[derive(Deserialize, JsonSchema)]
    struct Tuple(i32, String);
    #[derive(Deserialize, JsonSchema)]
    struct New(Vec<Pair>);
    #[derive(Deserialize, JsonSchema)]
    #[serde(transparent)]
    struct Transparent {
        inner: BTreeMap<String, bool>,
    }
    let text = [
        input::<Unit>(),
        input::<Empty>(),
        input::<()>(),
        input::<Tuple>(),
        input::<New>(),
        input::<Transparent>(),
    ];
    insta::assert_snapshot!(text.join("\n"), @"");
}

#[test]
fn derived_code_bears_generics_defaults_and_modules() {
    #[derive(Deserialize, JsonSchema)]
    struct Generic<'a, T: Clone, const N: usize>
    where
        T: 'a,
    {
        list: Vec<T>,
        map: BTreeMap<String, (T, T)>,
        #[serde(skip)]
        marker: PhantomData<fn() -> &'a T>,
    }
    #[derive(Clone, Deserialize, Serialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    struct Defaults {
        zebra: u64,
        apple: String,
    }
    impl Default for Defaults {
        fn default() -> Self {
            Self {
                zebra: 3,
                apple: "red".to_owned(),
            }
        }
    }
    mod inner {
        pub(super) fn four() -> i32 {
            4
        }
        pub(super) mod most {
            #[derive(serde::Deserialize, oxmcp::JsonSchema)]
            pub(in super::super) struct Deep {
                #[serde(default = "super::four")]
                pub(super) x: i32,
            }
        }
    }
    macro_rules! made {
        ($name:ident, $type:ty) => {
            #[derive(Deserialize, JsonSchema)]
            struct $name {
                z: $type,
                a: $type,
            }
        };
    }
    made!(Made, BTreeMap<String, u8>);

    let text = [
        input::<Generic<'_, bool, 3>>(),
        input::<Defaults>(),
        input::<inner::most::Deep>(),
        input::<Made>(),
    ];
    insta::assert_snapshot!(text.join("\n"), @"");
}

#[test]
fn flattened_fields_are_members_of_the_whole() {
    #[derive(Deserialize, JsonSchema)]
    struct Flat {
        z: i32,
        #[serde(flatten)]
        pair: Pair,
    }
    assert!(accepts::<Flat>(json!({"z": 1, "a": 1, "b": 2})));
    assert!(!accepts::<Flat>(json!({"z": 1, "pair": {"a": 1, "b": 2}})));
}

#[test]
fn the_path_of_the_crate_can_be_given() {
    mod facade {
        pub(super) use ::oxmcp as sdk;
    }
    #[derive(Deserialize, JsonSchema)]
    #[oxmcp(crate = "facade::sdk")]
    struct Pathed {
        b: i32,
        a: i32,
    }
    assert!(input::<Pathed>().starts_with(r#"{"type":"object","properties":{"b""#));
}

#[test]
fn attributes_of_schemars_are_followed() {
    #[derive(Deserialize, JsonSchema)]
    #[schemars(title = "A title", description = "A text")]
    struct Attributes {
        #[schemars(range(min = 1, max = 9), example = 3)]
        count: u32,
        #[schemars(regex(pattern = "^[a-z]$"), length(min = 1))]
        name: String,
        #[schemars(extend("x-mcp-header" = "Region"))]
        region: String,
    }
    insta::assert_snapshot!(input::<Attributes>(), @"");
}
