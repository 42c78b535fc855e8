//! Tools whose schemas are checked, and which are listed more often than called.

use oxmcp::{JsonSchema, RequestContext, Server, Tool, ToolError};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

#[rustfmt::skip]
pub(crate) fn offer(server: Server) -> Server {
    server.tools([
        Tool::dynamic("json_schema_2020_12_tool", "Takes a person to contact", contact(), show)
            .exact_schema(),
        Tool::new("test_header_mirroring", "Takes a value that a header mirrors", echo)
            .input(|s| s.property("value", |p| p.schema(json!({"x-mcp-header": "Value"})))),
    ])
}

async fn show(_: RequestContext, arguments: Box<RawValue>) -> Result<String, ToolError> {
    Ok(arguments.to_string())
}

#[derive(Deserialize, JsonSchema)]
struct Mirrored {
    /// Any text
    value: String,
}

async fn echo(Mirrored { value }: Mirrored) -> String {
    value
}

/// A schema that clients must receive word for word.
fn contact() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            },
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}
