//! Comparison of the frontmatter in a file with that in an entry.

use oxmcp::protocol::JsonObject;
use serde_json::Value;

/// Returns the name of the first field that differs.
pub(crate) fn first_difference<'a>(file: &'a JsonObject, entry: &'a JsonObject) -> Option<&'a str> {
    let same = |key: &str| match (file.get(key), entry.get(key)) {
        (Some(one), Some(other)) => is_same(one, other),
        _ => false,
    };
    let mut keys = file.keys().chain(entry.keys());
    keys.find(|key| !same(key)).map(String::as_str)
}

/// Whether two values are the same. Numbers are compared by their value: JavaScript writes 1.0 as `1`.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && first_difference(a, b).is_none()
        }
        _ => one == other,
    }
}
