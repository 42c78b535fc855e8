//! The arguments of a tool on the command line.

use std::{
    fs,
    io::{self, Read},
    thread,
};

use serde_json::{Map, Value};
use tokio::sync::oneshot;

use crate::failure::{Failure, Result};

/// The most bytes that are read from stdin.
const MAX_BYTES: u64 = 64 << 20;

/// Reads the arguments of a tool: the words, which complete the object of `--args`.
///
/// # Errors
/// A word has no `=`, what should be JSON is not, a file cannot be read, or an argument does not have its type.
pub(crate) fn read(
    words: &[String],
    all: Map<String, Value>,
    schema: &Value,
) -> Result<Map<String, Value>> {
    let mut arguments = all;
    for word in words {
        let (name, value) = argument(word, schema)?;
        arguments.insert(name, value);
    }
    Ok(arguments)
}

/// Reads the value of `--args`.
///
/// # Errors
/// It is no JSON object, or cannot be read.
pub(crate) async fn object(text: &str) -> Result<Map<String, Value>> {
    let text = match (text, text.strip_prefix('@')) {
        ("-", _) => stdin().await.map_err(|error| {
            Failure::usage(format!("could not read the arguments from stdin: {error}"))
        })?,
        (_, Some(path)) => file(path)?,
        _ => text.to_owned(),
    };
    serde_json::from_str(&text)
        .map_err(|error| Failure::usage(format!("`--args` is not a JSON object: {error}")))
}

/// Reads stdin on a thread of its own, so that Ctrl-C ends the command.
async fn stdin() -> io::Result<String> {
    let (sender, receiver) = oneshot::channel();
    thread::spawn(move || {
        let mut text = String::new();
        let read = io::stdin().take(MAX_BYTES + 1).read_to_string(&mut text);
        let read = match read {
            Ok(length) if length as u64 > MAX_BYTES => Err(io::Error::other(format!(
                "they have more than {MAX_BYTES} bytes"
            ))),
            Ok(_) => Ok(text),
            Err(error) => Err(error),
        };
        // Nobody waits for it after Ctrl-C.
        let _ = sender.send(read);
    });
    receiver.await.map_err(io::Error::other)?
}

fn file(path: &str) -> Result<String> {
    fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("could not read {path}: {error}")))
}

fn argument(word: &str, schema: &Value) -> Result<(String, Value)> {
    let (name, value) = word.split_once('=').ok_or_else(|| {
        Failure::usage(format!(
            "invalid argument {word:?}: expected `name=text`, `name:=json` or `name@=file`"
        ))
    })?;
    if let Some(name) = name.strip_suffix(':') {
        let json = serde_json::from_str(value)
            .map_err(|error| Failure::usage(format!("argument `{name}` is not JSON: {error}")))?;
        return Ok((name.to_owned(), json));
    }
    if let Some(name) = name.strip_suffix('@') {
        return Ok((name.to_owned(), file(value)?.into()));
    }
    let typed = typed(name, value, property(schema, name))?;
    Ok((name.to_owned(), typed))
}

fn property<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    schema.get("properties")?.get(name)
}

/// The types that a schema allows, as far as it says so itself. Empty if it does not.
fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => {
            let alternatives = ["anyOf", "oneOf"]
                .iter()
                .filter_map(|it| schema.get(*it)?.as_array());
            alternatives.flatten().flat_map(types).collect()
        }
    }
}

/// Text in the type that the schema wants. It stays a string wherever the schema takes one, so that `012` does not become 12.
fn typed(name: &str, text: &str, schema: Option<&Value>) -> Result<Value> {
    let types = schema.map(types).unwrap_or_default();
    if types.is_empty() || types.contains(&"string") {
        return Ok(text.into());
    }
    let parsed: Option<Value> = serde_json::from_str(text).ok();
    let fits = |value: &Value| {
        types.iter().any(|it| match *it {
            "integer" => value.as_f64().is_some_and(|it| it.fract() == 0.0),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            "null" => value.is_null(),
            _ => false,
        })
    };
    parsed.filter(fits).ok_or_else(|| {
        let hint = if types.iter().any(|it| matches!(*it, "array" | "object")) {
            format!("; write it as JSON: `{name}:=…`")
        } else {
            String::new()
        };
        Failure::usage(format!(
            "argument `{name}` is {text:?}; expected {}{hint}",
            types.join(" or ")
        ))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(words: &[&str]) -> Result<Value, String> {
        let schema = json!({"properties": {
            "n": {"type": "integer"}, "s": {"type": "string"}, "b": {"type": ["boolean", "null"]},
            "l": {"type": "array"}, "either": {"anyOf": [{"type": "number"}, {"type": "string"}]}, "any": {},
        }});
        let words: Vec<String> = words.iter().map(|it| (*it).to_owned()).collect();
        read(&words, Map::new(), &schema)
            .map(Value::Object)
            .map_err(|it| it.to_string())
    }

    #[test]
    fn arguments_are_typed_by_the_schema() {
        let words = [
            "n=3", "s=012", "b=true", "l=[1]", "either=4", "any=5", "new=true",
        ];
        let expected = json!({"n": 3, "s": "012", "b": true, "l": [1], "either": "4", "any": "5", "new": "true"});
        assert_eq!(parse(&words), Ok(expected));
        assert_eq!(
            parse(&["s:=5", "a:={\"x\": 1}", "q=a=b"]),
            Ok(json!({"s": 5, "a": {"x": 1}, "q": "a=b"}))
        );
    }

    #[test]
    fn wrong_arguments_are_explained() {
        for (word, expected) in [
            ("n", "expected `name=text`"),
            ("n=many", "argument `n` is \"many\"; expected integer"),
            ("n=1.5", "expected integer"),
            ("l=a", "write it as JSON: `l:=…`"),
            ("s:=x", "argument `s` is not JSON"),
            ("s@=/no/such/file", "could not read /no/such/file"),
        ] {
            let said = parse(&[word]).unwrap_err();
            assert!(said.contains(expected), "{word}: {said}");
        }
    }
}
