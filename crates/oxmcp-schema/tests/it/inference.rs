//! Schemas from types: the crate's derive, used from another crate, and portability.
#![expect(dead_code, reason = "only the schemas of these types are wanted")]

use std::{collections::BTreeMap, marker::PhantomData, net::IpAddr, time::Duration};

use oxmcp_schema::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::to_raw_value};

fn input<T: JsonSchema>() -> String {
    Schema::of::<T>().as_raw().get().to_owned()
}

fn accepts<T: JsonSchema>(value: impl Serialize) -> bool {
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
#[expect(clippy::use_self, reason = "both ways to name the type have to work")]
struct Tree {
    children: Vec<Tree>,
    next: Option<Box<Self>>,
}

#[test]
fn fields_are_properties_in_order() {
    insta::assert_snapshot!(input::<Pair>(), @r#"{"type":"object","description":"Two numbers","properties":{"b":{"type":"number","description":"the dividend"},"a":{"type":"number","description":"the divisor"}},"required":["b","a"]}"#);
}

#[test]
fn skipped_defaulted_and_optional_fields_are_not_required() {
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
    insta::assert_snapshot!(input::<Query>(), @r#"{"type":"object","properties":{"searchText":{"type":"string"},"limit":{"type":"integer","default":5,"minimum":0},"tags":{"type":"array","default":[],"items":{"type":"string"}},"unit":{"type":"string","enum":["degrees_celsius","fahrenheit"]},"note":{"type":"string"}},"required":["searchText"]}"#);
    insta::assert_snapshot!(Schema::of_output::<Query>().as_raw().get(), @r#"{"type":"object","properties":{"searchText":{"type":"string"},"limit":{"type":"integer","default":5,"minimum":0},"tags":{"type":"array","default":[],"items":{"type":"string"}},"unit":{"anyOf":[{"type":"string","enum":["degrees_celsius","fahrenheit"]},{"type":"null"}]},"note":{"type":"string"}},"required":["searchText","limit","tags","unit"]}"#);
}

#[test]
fn null_for_option_is_tolerated_but_not_advertised() {
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
fn nested_types_are_inlined_and_recursive_ones_referenced() {
    #[derive(Deserialize, JsonSchema)]
    struct Nested {
        one: Pair,
        two: Vec<BTreeMap<String, Pair>>,
    }
    assert!(!input::<Nested>().contains("$ref"));
    insta::assert_snapshot!(input::<Tree>(), @r##"{"type":"object","properties":{"children":{"type":"array","items":{"$ref":"#"}},"next":{"$ref":"#"}},"required":["children"]}"##);
    assert!(accepts::<Tree>(
        json!({"children": [{"children": []}], "next": {"children": []}})
    ));
    assert!(!accepts::<Tree>(json!({"children": [{"children": [1]}]})));
}

#[test]
fn nonstandard_formats_are_dropped() {
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
    insta::assert_snapshot!(input::<Formats>(), @r#"{"type":"object","properties":{"a":{"type":"integer","maximum":255,"minimum":0},"b":{"type":"integer"},"c":{"type":"number"},"d":{"type":"integer","minimum":0},"e":{"type":"string"},"f":{"type":"string","maxLength":1,"minLength":1},"g":{"type":"object","properties":{"secs":{"type":"integer","minimum":0},"nanos":{"type":"integer","minimum":0}},"required":["secs","nanos"]},"h":{"type":"string","format":"uuid"},"any":{}},"required":["a","b","c","d","e","f","g","h","any"]}"#);
}

#[test]
fn enums_are_supported_in_every_representation() {
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
    insta::assert_snapshot!(input::<Described>(), @r#"{"type":"string","description":"How hot\n\n- \"Hot\": boiling\n- \"Cold\": freezing","enum":["Hot","Cold"]}"#);
    insta::assert_snapshot!(input::<External>(), @r#"{"type":"object","anyOf":[{"type":"object","additionalProperties":false,"properties":{"Unit":{"type":"null"}},"required":["Unit"]},{"type":"object","additionalProperties":false,"properties":{"New":{"type":"integer"}},"required":["New"]},{"type":"object","additionalProperties":false,"properties":{"Named":{"type":"object","properties":{"z":{"type":"boolean"},"a":{"type":"boolean"}},"required":["z","a"]}},"required":["Named"]},{"type":"object","additionalProperties":false,"properties":{"Tuple":{"type":"array","maxItems":2,"minItems":2,"prefixItems":[{"type":"integer"},{"type":"string"}]}},"required":["Tuple"]}]}"#);
    insta::assert_snapshot!(input::<Internal>(), @r#"{"type":"object","anyOf":[{"type":"object","properties":{"kind":{"type":"string","enum":["Circle"]},"r":{"type":"number"},"a":{"type":"string"}},"required":["kind","r"]},{"type":"object","properties":{"kind":{"type":"string","enum":["Nothing"]}},"required":["kind"]}]}"#);
    insta::assert_snapshot!(input::<Adjacent>(), @r#"{"type":"object","anyOf":[{"type":"object","properties":{"t":{"type":"string","enum":["Number"]},"c":{"type":"integer"}},"required":["t","c"]},{"type":"object","properties":{"t":{"type":"string","enum":["Text"]},"c":{"type":"string"}},"required":["t","c"]}]}"#);
    assert!(accepts::<Internal>(json!({"kind": "Nothing"})));
    assert!(!accepts::<Internal>(json!({"kind": "Circle"})));
}

#[test]
fn structs_of_every_form_are_supported() {
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
    insta::assert_snapshot!(text.join("\n"), @r#"
    {"type":"object","properties":{}}
    {"type":"object","properties":{}}
    {"type":"object","properties":{}}
    {"type":"array","maxItems":2,"minItems":2,"prefixItems":[{"type":"integer"},{"type":"string"}]}
    {"type":"array","items":{"type":"object","description":"Two numbers","properties":{"b":{"type":"number","description":"the dividend"},"a":{"type":"number","description":"the divisor"}},"required":["b","a"]}}
    {"type":"object","additionalProperties":{"type":"boolean"},"properties":{}}
    "#);
}

#[test]
fn derive_handles_generics_defaults_and_modules() {
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
            #[derive(serde::Deserialize, oxmcp_schema::JsonSchema)]
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
    insta::assert_snapshot!(text.join("\n"), @r#"
    {"type":"object","properties":{"list":{"type":"array","items":{"type":"boolean"}},"map":{"type":"object","additionalProperties":{"type":"array","maxItems":2,"minItems":2,"prefixItems":[{"type":"boolean"},{"type":"boolean"}]}}},"required":["list","map"]}
    {"type":"object","additionalProperties":false,"properties":{"zebra":{"type":"integer","default":3,"minimum":0},"apple":{"type":"string","default":"red"}}}
    {"type":"object","properties":{"x":{"type":"integer","default":4}}}
    {"type":"object","properties":{"z":{"type":"object","additionalProperties":{"type":"integer","maximum":255,"minimum":0}},"a":{"type":"object","additionalProperties":{"type":"integer","maximum":255,"minimum":0}}},"required":["z","a"]}
    "#);
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
fn crate_path_is_configurable() {
    mod facade {
        pub(super) use ::oxmcp_schema as sdk;
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
fn schemars_attributes_are_respected() {
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
    insta::assert_snapshot!(input::<Attributes>(), @r#"{"type":"object","title":"A title","description":"A text","properties":{"count":{"type":"integer","examples":[3],"maximum":9,"minimum":1},"name":{"type":"string","minLength":1,"pattern":"^[a-z]$"},"region":{"type":"string","x-mcp-header":"Region"}},"required":["count","name","region"]}"#);
}
