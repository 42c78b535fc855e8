//! A schema from a type, with options, and what is told of values that do not fit.
//!
//! `cargo run -p oxmcp-schema --example order`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]
#![expect(dead_code, reason = "only the schema of the type is wanted")]

use std::error::Error;

use oxmcp_schema::{JsonSchema, Schema};
use serde_json::{json, value::to_raw_value};

#[derive(serde::Deserialize, JsonSchema)]
struct Order {
    /// how many
    count: u32,
    size: Size,
    note: Option<String>,
}

#[derive(serde::Deserialize, JsonSchema)]
enum Size {
    Small,
    Large,
}

fn main() -> Result<(), Box<dyn Error>> {
    let schema = Schema::of::<Order>().with(|s| {
        s.property("count", |p| p.minimum(1).maximum(9))
            .deny_unknown()
    })?;
    println!("{}", schema.as_raw());
    for value in [
        json!({"count": 1, "size": "Small"}),
        json!({"cuont": 3, "size": "Smal"}),
        json!({"count": 100, "size": "Large", "colour": "red"}),
    ] {
        match schema.validate(&to_raw_value(&value)?) {
            Ok(()) => println!("{value} is valid"),
            Err(violations) => println!("{value} is not valid:\n{violations}"),
        }
    }
    Ok(())
}
