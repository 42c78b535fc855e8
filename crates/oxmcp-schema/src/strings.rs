//! Objects whose members are all given as strings, such as the arguments of a prompt, and the conversion of the strings
//! to values.

use oxmcp_json::{Text, pointer_token, write_string};
use serde_json::{Number, Value};

use crate::{
    error::{Result, SchemaError},
    explain::{
        expected::{expected, quote_text},
        refusal::describe,
    },
    infer::order,
    schema::Schema,
    violations::Violation,
};

/// The fields of an object that is read from strings, and the schema that the result must match.
#[derive(Clone, Debug)]
pub struct StringFields {
    schema: Schema,
    fields: Vec<StringField>,
}

/// The value given for a field: a string and, for a field that is a list, the strings of its items.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "only the SDK may use it")]
pub struct StringValue<'a> {
    /// The string; the first one if there are several.
    pub text: &'a str,
    /// The strings, if there may be several.
    pub pieces: &'a [String],
}

/// A field of an object that is read from strings.
#[derive(Clone, Debug)]
pub struct StringField {
    /// The name of the member.
    pub name: String,
    /// The display name, for people.
    pub title: Option<String>,
    /// The description.
    pub description: Option<String>,
    /// Whether the field must be present.
    pub is_required: bool,
    /// The only accepted values, as users type them. Empty if there is no such restriction.
    pub values: Vec<String>,
    /// The types of the value, or of the items if it is a list.
    kinds: Kinds,
    is_list: bool,
}

impl StringFields {
    /// Creates the fields of an object with this schema, in the order of their declaration.
    ///
    /// # Errors
    /// If the schema does not describe a struct with named fields, or a field cannot be read from a string. The message
    /// says how to correct that.
    pub fn new(schema: Schema) -> Result<Self> {
        Self::build(schema, false)
    }

    /// The same as [`new`](Self::new), but fields may also be lists.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_lists(schema: Schema) -> Result<Self> {
        Self::build(schema, true)
    }

    fn build(schema: Schema, lists: bool) -> Result<Self> {
        let root = schema.marked();
        if !schema.is_object() || root.get("anyOf").is_some() {
            return Err(SchemaError::invalid(format!(
                "arguments need names, but this schema accepts {}; use a struct with named fields",
                expected(root)
            )));
        }
        let required = root.get("required").and_then(Value::as_array);
        let is_required =
            |name: &str| required.is_some_and(|names| names.iter().any(|known| known == name));
        let properties = root.get("properties").and_then(Value::as_object);
        let properties = properties.map(|all| order::in_order(all, root.get("required")));
        let properties = properties.into_iter().flatten();
        let fields = properties
            .map(|(name, property)| StringField::of(name, property, is_required(name), lists))
            .collect::<Result<_>>()?;
        Ok(Self { schema, fields })
    }

    /// Returns the fields, in the order of their declaration.
    pub fn iter(&self) -> impl Iterator<Item = &StringField> {
        self.fields.iter()
    }

    /// Returns whether other members than the fields are accepted, as for maps.
    #[must_use]
    pub fn is_open(&self) -> bool {
        let additional = self.schema.marked().get("additionalProperties");
        additional.is_some_and(|additional| *additional != Value::Bool(false))
    }

    /// Converts the given strings to an object, and validates it.
    ///
    /// # Errors
    /// The violations, one per line.
    pub fn read<'a>(
        &self,
        given: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<StringObject, String> {
        let given = given.into_iter();
        self.read_lists(given.map(|(name, text)| (name, StringValue { text, pieces: &[] })))
    }

    /// The same as [`read`](Self::read), but values may also be lists.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    #[expect(
        clippy::missing_panics_doc,
        reason = "it cannot happen, as the message says"
    )]
    pub fn read_lists<'a>(
        &self,
        given: impl IntoIterator<Item = (&'a str, StringValue<'a>)>,
    ) -> Result<StringObject, String> {
        let mut object = StringObject {
            schema: self.schema.clone(),
            json: String::new(),
            names: Vec::new(),
        };
        let mut json = b"{".to_vec();
        for (name, given) in given {
            let field = self.fields.iter().find(|field| field.name == name);
            if field.is_some_and(|field| field.is_left_out(given.text)) {
                continue;
            }
            if !object.names.is_empty() {
                json.push(b',');
            }
            // Each member is on a separate line, so that the line of a deserialization error identifies the member.
            json.push(b'\n');
            write_string(&mut json, name);
            json.push(b':');
            match field {
                Some(field) => field.write(&mut json, given),
                None => write_string(&mut json, given.text),
            }
            object.names.push(name.to_owned());
        }
        json.extend_from_slice(b"\n}");
        object.json = String::from_utf8(json).expect("strings and numbers are UTF-8");
        match self.schema.validate_text(Text::checked(&object.json)) {
            Ok(()) => Ok(object),
            Err(violations) => {
                let lines: Vec<_> = violations.iter().map(line).collect();
                Err(lines.join("\n"))
            }
        }
    }
}

/// The message of a violation, with the name of the member.
fn line(failure: &Violation) -> String {
    match failure.pointer().strip_prefix('/') {
        Some(name) => {
            let name = name.replace("~1", "/").replace("~0", "~");
            format!("{}: {}", quote_text(&name), failure.message())
        }
        None => failure.message().to_owned(),
    }
}

impl StringField {
    fn of(name: &str, schema: &Value, is_required: bool, lists: bool) -> Result<Self> {
        let text = |keyword| {
            schema
                .get(keyword)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let is_list = lists && schema.get("type").is_some_and(|kind| kind == "array");
        let items = schema.get("items").filter(|_| is_list);
        let single = items.unwrap_or(schema);
        let kinds = Kinds::of(single);
        if kinds == Kinds::default() {
            return Err(SchemaError::invalid(format!(
                "the field {} cannot be read from a string, since it is {}; use a String, a number, a bool, an enum without data, or an Option of these",
                quote_text(name),
                expected(schema)
            )));
        }
        Ok(Self {
            name: name.to_owned(),
            title: text("title"),
            description: text("description"),
            is_required,
            values: typed_values(single),
            kinds,
            is_list,
        })
    }

    /// Returns whether the field may have several strings.
    #[must_use]
    pub fn is_list(&self) -> bool {
        self.is_list
    }

    /// Writes the given value.
    fn write(&self, out: &mut Vec<u8>, given: StringValue<'_>) {
        if !self.is_list {
            return self.kinds.write(out, given.text);
        }
        out.push(b'[');
        for (index, piece) in given.pieces.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            self.kinds.write(out, piece);
        }
        out.push(b']');
    }

    /// Whether the field counts as left out. Many forms send fields that were not filled in as empty strings; if such a
    /// string is not a valid value, it counts as absent.
    fn is_left_out(&self, text: &str) -> bool {
        let is_value = self.is_list
            || self.kinds.has_strings()
                && (self.values.is_empty() || self.values.iter().any(String::is_empty));
        !self.is_required && !is_value && text.trim().is_empty()
    }
}

/// An object that was read from strings.
#[derive(Debug)]
pub struct StringObject {
    schema: Schema,
    json: String,
    /// The names of the members on the lines of `json`, from the second line on.
    names: Vec<String>,
}

impl StringObject {
    /// Returns the object as JSON.
    #[must_use]
    pub fn json(&self) -> &str {
        &self.json
    }

    /// Describes the error of a type that cannot be read from the JSON although the schema accepts it.
    #[must_use]
    pub fn explain(&self, error: &serde_json::Error) -> String {
        let index = error.line().checked_sub(2);
        let name = index.and_then(|index| self.names.get(index));
        let place = name.map(|name| format!("/{}", pointer_token(name)));
        let object = Text::checked(&self.json);
        let violations = describe(Some(&self.schema), object, error, place);
        violations.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// The values that a schema lists, as users type them; empty if it lists none.
pub(crate) fn typed_values(schema: &Value) -> Vec<String> {
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

/// The types of values that a field can have, as far as strings can represent them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "it is a set, and these are its members"
)]
pub(crate) struct Kinds {
    string: bool,
    integer: bool,
    number: bool,
    boolean: bool,
}

impl Kinds {
    pub(crate) fn of(schema: &Value) -> Self {
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
            // A schema that accepts any value accepts strings.
            _ => kinds.string |= says_nothing && !map.contains_key("$ref"),
        }
        kinds
    }

    /// Whether strings are values of this field.
    pub(crate) fn has_strings(self) -> bool {
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

    /// Writes the value that the text represents. Text that represents none is written as a string, which validation
    /// then refuses.
    pub(crate) fn write(self, out: &mut Vec<u8>, text: &str) {
        match self.scalar(text.trim()) {
            // If strings are accepted as well, only text in the exact form of a scalar is written as that scalar.
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
