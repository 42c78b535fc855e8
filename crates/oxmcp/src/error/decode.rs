//! Plain texts for deserialization errors. serde names Rust types and positions, which mean nothing to the peer.

/// The message of a deserialization error, without its position and in the terms of JSON.
pub(crate) fn plain_decode_error(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text
        .rsplit_once(" at line ")
        .map_or(&*text, |(message, _)| message);
    if text.starts_with("data did not match any variant") {
        return "the value matches none of the expected forms".to_owned();
    }
    if let Some(name) = text.strip_prefix("duplicate field ") {
        return format!("duplicate key {name}");
    }
    let Some((found, expected)) = text.split_once(", expected ") else {
        return text.to_owned();
    };
    let found = match found {
        "invalid type: map" => "found an object",
        "invalid type: sequence" => "found an array",
        found => found,
    };
    format!("{found}, expected {}", in_json(expected))
}

/// An expectation of serde in the terms of JSON.
fn in_json(expected: &str) -> &str {
    match expected {
        "a sequence" => "an array",
        "a map" => "an object",
        _ if expected.starts_with("tuple struct ") => "an array",
        _ if expected.starts_with("struct ") || expected.contains("tagged enum ") => "an object",
        _ if expected.starts_with("enum ") || expected.starts_with("variant ") => "a known name",
        other => other,
    }
}

#[cfg(test)]
#[expect(dead_code, reason = "values are only read")]
mod tests {
    use std::collections::BTreeMap;

    use serde::{Deserialize, de::DeserializeOwned};

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Inner {
        name: String,
    }

    #[derive(Debug, Deserialize)]
    #[serde(untagged)]
    enum Either {
        Number(u8),
        Inner(Inner),
    }

    fn said<T: DeserializeOwned + std::fmt::Debug>(json: &str) -> String {
        plain_decode_error(&serde_json::from_str::<T>(json).unwrap_err())
    }

    #[test]
    fn rust_types_and_positions_are_hidden() {
        let said = [
            said::<Inner>("5"),
            said::<Inner>("[[]]"),
            said::<Inner>("{\"name\": {}}"),
            said::<Inner>("{}"),
            said::<Vec<Inner>>("{}"),
            said::<BTreeMap<String, Inner>>("[]"),
            said::<Either>("true"),
            said::<Inner>("{"),
        ];
        insta::assert_snapshot!(said.join("\n"), @r"
        invalid type: integer `5`, expected an object
        found an array, expected a string
        found an object, expected a string
        missing field `name`
        found an object, expected an array
        found an array, expected an object
        the value matches none of the expected forms
        EOF while parsing an object
        ");
    }
}
