//! What a string can stand for, as a schema says it.

use serde_json::{Number, Value};

use crate::json::write_string;

/// The values that a schema lists, as they are typed; none where it accepts others as well.
pub(super) fn typed_values(schema: &Value) -> Vec<String> {
    if let Some(listed) = schema.get("enum").and_then(Value::as_array) {
        let typed = listed.iter().filter_map(|value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
            scalar => Some(scalar.to_string()),
        });
        typed.collect()
    } else if schema.get("type").is_some_and(|kind| kind == "boolean") {
        vec!["true".to_owned(), "false".to_owned()]
    } else {
        Vec::new()
    }
}

/// The kinds of values that a field can have, of those that a string can stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "it is a set, and these are its members"
)]
pub(super) struct Kinds {
    string: bool,
    integer: bool,
    number: bool,
    boolean: bool,
}

impl Kinds {
    pub(super) fn of(schema: &Value) -> Self {
        let Value::Object(map) = schema else {
            return Self::default();
        };
        let mut kinds = Self::default();
        if let Some(Value::Array(values)) = map.get("enum") {
            values.iter().for_each(|value| kinds.add_kind_of(value));
            return kinds;
        }
        let mut says_nothing = true;
        for keyword in ["anyOf", "oneOf", "allOf"] {
            for form in map
                .get(keyword)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                kinds.merge(Self::of(form));
                says_nothing = false;
            }
        }
        match map.get("type") {
            Some(Value::String(name)) => kinds.add(name),
            Some(Value::Array(names)) => {
                names
                    .iter()
                    .filter_map(Value::as_str)
                    .for_each(|name| kinds.add(name));
            }
            // What accepts anything accepts strings.
            _ => kinds.string |= says_nothing && !map.contains_key("$ref"),
        }
        kinds
    }

    /// Whether any string, or one of several, is a value as it stands.
    pub(super) fn has_strings(self) -> bool {
        self.string
    }

    fn add(&mut self, name: &str) {
        match name {
            "string" => self.string = true,
            "integer" => self.integer = true,
            "number" => self.number = true,
            "boolean" => self.boolean = true,
            _ => {}
        }
    }

    fn add_kind_of(&mut self, value: &Value) {
        match value {
            Value::String(_) => self.string = true,
            Value::Bool(_) => self.boolean = true,
            Value::Number(number) if number.is_f64() => self.number = true,
            Value::Number(_) => self.integer = true,
            _ => {}
        }
    }

    fn merge(&mut self, other: Self) {
        self.string |= other.string;
        self.integer |= other.integer;
        self.number |= other.number;
        self.boolean |= other.boolean;
    }

    /// Writes the value that the text stands for. What stands for none is a string, which validation will refuse.
    pub(super) fn write(self, out: &mut Vec<u8>, text: &str) {
        match self.scalar(text.trim()) {
            // Where strings are fine as well, only what would be written just so is anything else.
            Some(scalar) if !self.string || scalar == text => {
                out.extend_from_slice(scalar.as_bytes());
            }
            _ => write_string(out, text),
        }
    }

    fn scalar(self, text: &str) -> Option<String> {
        let boolean = || {
            let mut booleans = ["true", "false"].into_iter();
            booleans
                .find(|it| text.eq_ignore_ascii_case(it))
                .map(str::to_owned)
        };
        let integer = || {
            let signed = text.parse::<i128>().ok().map(|it| it.to_string());
            signed.or_else(|| text.parse::<u128>().ok().map(|it| it.to_string()))
        };
        let number = || Number::from_f64(text.parse().ok()?).map(|it| it.to_string());
        let boolean = self.boolean.then(boolean).flatten();
        let integer = || (self.integer || self.number).then(integer).flatten();
        let number = || self.number.then(number).flatten();
        boolean.or_else(integer).or_else(number)
    }
}
