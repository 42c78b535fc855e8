//! Options on inferred schemas.
#![expect(dead_code, reason = "only the schemas of these types are wanted")]

use oxmcp_schema::{Schema, SchemaOptions};
use serde_json::{Value, json, value::to_raw_value};

#[derive(oxmcp_schema::JsonSchema)]
struct Order {
    /// how many
    count: u32,
    sizes: Vec<Size>,
    note: Option<String>,
    parent: Option<Box<Self>>,
}

#[derive(oxmcp_schema::JsonSchema)]
struct Size {
    name: String,
    width: f64,
}

fn with(options: impl FnOnce(SchemaOptions) -> SchemaOptions) -> Value {
    Schema::of::<Order>().with(options).unwrap().to_value()
}

fn error(options: impl FnOnce(SchemaOptions) -> SchemaOptions) -> String {
    Schema::of::<Order>()
        .with(options)
        .unwrap_err()
        .message()
        .to_owned()
}

#[test]
fn options_are_recursive() {
    let schema = with(|s| {
        s.description("an order")
            .property("count", |p| {
                p.description("size of the inventory")
                    .minimum(1)
                    .maximum(10)
            })
            .property("sizes", |p| {
                p.optional().items(|i| {
                    i.deny_unknown_arguments().property("name", |p| {
                        p.title("Size")
                            .enum_values(["S", "M"])
                            .default("M")
                            .examples(["S"])
                    })
                })
            })
            .property("note", |p| {
                p.required()
                    .min_length(1)
                    .max_length(9)
                    .pattern("^[a-z]+$")
                    .format("hostname")
            })
    });
    let properties = &schema["properties"];
    assert_eq!(schema["description"], "an order");
    assert_eq!(
        properties["count"],
        json!({"type": "integer", "description": "size of the inventory", "minimum": 1, "maximum": 10})
    );
    assert_eq!(properties["sizes"]["items"]["additionalProperties"], false);
    assert_eq!(
        properties["sizes"]["items"]["properties"]["name"],
        json!({"type": "string", "title": "Size", "enum": ["S", "M"], "default": "M", "examples": ["S"]})
    );
    assert_eq!(
        properties["note"],
        json!({"type": "string", "minLength": 1, "maxLength": 9, "pattern": "^[a-z]+$", "format": "hostname"})
    );
    assert_eq!(schema["required"], json!(["count", "note"]));
}

#[test]
fn schema_keywords_are_added_and_replaced() {
    let schema = with(|s| {
        s.property("sizes", |p| {
            p.schema(json!({"uniqueItems": true, "x-mcp-header": "Sizes"}))
        })
        .property("count", |p| p.schema(json!({"type": "string"})))
    });
    assert_eq!(schema["properties"]["sizes"]["uniqueItems"], true);
    assert_eq!(schema["properties"]["sizes"]["x-mcp-header"], "Sizes");
    assert_eq!(schema["properties"]["sizes"]["type"], "array");
    assert_eq!(schema["properties"]["count"]["type"], "string");
}

#[test]
fn options_apply_at_their_place_in_recursive_types() {
    let schema = Schema::of::<Order>()
        .with(|s| s.property("parent", |p| p.property("count", |p| p.maximum(5))))
        .unwrap();
    let order = |count: u32, parent: Value| json!({"count": count, "sizes": [], "parent": parent});
    let check = |value: Value| schema.validate(&to_raw_value(&value).unwrap());
    assert!(check(order(100, order(5, Value::Null))).is_ok());
    assert_eq!(
        check(order(100, order(6, Value::Null)))
            .unwrap_err()
            .to_string(),
        "/parent/count: 6 is too large; expected at most 5"
    );
    assert!(
        check(order(100, order(5, order(6, Value::Null)))).is_ok(),
        "the grandparent is any order"
    );
}

#[test]
fn options_change_the_validation() {
    let schema = Schema::of::<Order>()
        .with(|s| s.property("count", |p| p.minimum(1)))
        .unwrap();
    let order = |count: u32| to_raw_value(&json!({"count": count, "sizes": []})).unwrap();
    assert!(schema.validate(&order(1)).is_ok());
    assert!(schema.validate(&order(0)).is_err());
}

#[test]
fn option_for_unknown_field_error_lists_known_ones() {
    assert_eq!(
        error(|s| s.property("cuont", |p| p.minimum(1))),
        r#"schema options at /: unknown property "cuont"; did you mean "count"? (properties: "count", "sizes", "note", "parent")"#
    );
    assert_eq!(
        error(|s| s.property("sizes", |p| p.items(|i| i.property("colour", |p| p)))),
        r#"schema options at /sizes/items: unknown property "colour" (properties: "name", "width")"#
    );
    assert_eq!(
        error(|s| s.property("count", |p| p.items(|i| i))),
        "schema options at /count: cannot set options for items: not an array"
    );
    assert_eq!(
        error(|s| s.required()),
        "schema options at /: only a property can be required or optional"
    );
}

#[test]
fn options_yielding_an_invalid_schema_are_refused() {
    assert!(
        error(|s| s.property("count", |p| p.minimum("one"))).contains("/properties/count/minimum")
    );
    assert!(error(|s| s.property("note", |p| p.pattern("("))).contains("/properties/note/pattern"));
    assert!(error(|s| s.schema(json!(7))).contains("must be an object"));
}
