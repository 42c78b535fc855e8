//! Tools as signatures: `search(query: string, limit?: integer = 10) -> {hits: string[]}`.

use serde_json::Value;

use crate::escape;

/// The depth from which a type is only named.
const MAX_DEPTH: usize = 3;
/// The maximum number of values of an enumeration that are shown.
const MAX_VALUES: usize = 8;

/// The signature of a tool.
pub(crate) fn signature(name: &str, input: &Value, output: Option<&Value>) -> String {
    let arguments = members(input, 0);
    let result = output
        .map(|it| format!(" -> {}", kind(it, 0)))
        .unwrap_or_default();
    escape::line(&format!("{name}({arguments}){result}"))
}

fn members(schema: &Value, depth: usize) -> String {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return String::new();
    };
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|it| it.iter().any(|it| it == name));
    let shown = properties.iter().map(|(name, schema)| {
        let optional = if is_required(name) { "" } else { "?" };
        let default = schema
            .get("default")
            .map(|it| format!(" = {it}"))
            .unwrap_or_default();
        format!("{name}{optional}: {}{default}", kind(schema, depth + 1))
    });
    shown.collect::<Vec<_>>().join(", ")
}

fn kind(schema: &Value, depth: usize) -> String {
    if depth > MAX_DEPTH {
        return "…".to_owned();
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let mut shown: Vec<String> = values
            .iter()
            .take(MAX_VALUES)
            .map(Value::to_string)
            .collect();
        if values.len() > MAX_VALUES {
            shown.push("…".to_owned());
        }
        return shown.join(" | ");
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(several) = schema.get(key).and_then(Value::as_array) {
            let shown: Vec<String> = several
                .iter()
                .take(MAX_VALUES)
                .map(|it| kind(it, depth + 1))
                .collect();
            return shown.join(" | ");
        }
    }
    match schema.get("type") {
        Some(Value::String(one)) => typed(one, schema, depth),
        Some(Value::Array(several)) => {
            let several = several.iter().filter_map(Value::as_str);
            several
                .map(|it| typed(it, schema, depth))
                .collect::<Vec<_>>()
                .join(" | ")
        }
        _ if schema.get("properties").is_some() => typed("object", schema, depth),
        _ => "any".to_owned(),
    }
}

fn typed(name: &str, schema: &Value, depth: usize) -> String {
    match name {
        "array" => {
            let items = schema
                .get("items")
                .map_or_else(|| "any".to_owned(), |it| kind(it, depth + 1));
            if items.contains(' ') {
                format!("({items})[]")
            } else {
                format!("{items}[]")
            }
        }
        "object" if schema.get("properties").is_some() => format!("{{{}}}", members(schema, depth)),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn signatures_show_types_and_defaults() {
        let input = json!({"type": "object", "required": ["query"], "properties": {
            "limit": {"type": "integer", "default": 10},
            "query": {"type": "string"},
            "sort": {"enum": ["asc", "desc"]},
            "tags": {"type": "array", "items": {"type": ["string", "null"]}},
        }});
        let output = json!({"type": "object", "required": ["hits"], "properties": {
            "hits": {"type": "array", "items": {"type": "string"}},
        }});
        assert_eq!(
            signature("search", &input, Some(&output)),
            r#"search(limit?: integer = 10, query: string, sort?: "asc" | "desc", tags?: (string | null)[]) -> {hits: string[]}"#
        );
        assert_eq!(signature("now", &json!({"type": "object"}), None), "now()");
    }
}
