//! Objects whose members all come as strings, as the arguments of a prompt do.

use serde_json::Value;

use super::{
    Schema,
    expected::{expected, quote_text, shorten},
    kinds::{Kinds, typed_values},
    order,
    violations::Violation,
};
use crate::{
    Error, Result,
    json::{Text, write_string},
};

/// What is known of an object that is read from strings: its fields, and the schema that it must fit in the end.
#[derive(Clone, Debug)]
pub(crate) struct StringFields {
    schema: Schema,
    fields: Vec<StringField>,
}

/// What was given for a field: a text and, for a field that is a list, the texts that it is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given<'a> {
    pub(crate) text: &'a str,
    pub(crate) pieces: &'a [String],
}

/// A field of such an object.
#[derive(Clone, Debug)]
pub(crate) struct StringField {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) is_required: bool,
    /// The only values that are accepted, as they are typed. Empty where any may be.
    pub(crate) values: Vec<String>,
    /// Those of the items, where it is a list.
    kinds: Kinds,
    is_list: bool,
}

impl StringFields {
    /// The fields of what has this schema, in the order of their declaration.
    ///
    /// # Errors
    /// Where it is no struct with named fields, or one of them cannot be read from a string. It says what to do.
    pub(crate) fn new(schema: Schema) -> Result<Self> {
        Self::build(schema, false)
    }

    /// The same, where a field may be a list as well.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(crate) fn with_lists(schema: Schema) -> Result<Self> {
        Self::build(schema, true)
    }

    fn build(schema: Schema, lists: bool) -> Result<Self> {
        let root = schema.marked();
        if !schema.is_object() || root.get("anyOf").is_some() {
            return Err(Error::misuse(format!(
                "arguments have names, and {} has none; use a struct with named fields (for a single value: with one field)",
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

    pub(crate) fn iter(&self) -> impl Iterator<Item = &StringField> {
        self.fields.iter()
    }

    /// Whether members are taken that no field is named after, as maps take them.
    pub(crate) fn is_open(&self) -> bool {
        let additional = self.schema.marked().get("additionalProperties");
        additional.is_some_and(|additional| *additional != Value::Bool(false))
    }

    /// Writes what was given as the object that it stands for, and validates it.
    ///
    /// # Errors
    /// What is wrong, a line for each.
    pub(crate) fn read<'a>(
        &self,
        given: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<StringObject, String> {
        let given = given.into_iter();
        self.read_lists(given.map(|(name, text)| (name, Given { text, pieces: &[] })))
    }

    /// The same, where lists may have been given as well.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(crate) fn read_lists<'a>(
        &self,
        given: impl IntoIterator<Item = (&'a str, Given<'a>)>,
    ) -> Result<StringObject, String> {
        let mut object = StringObject::default();
        let mut json = b"{".to_vec();
        for (name, given) in given {
            let field = self.fields.iter().find(|field| field.name == name);
            if field.is_some_and(|field| field.is_left_out(given.text)) {
                continue;
            }
            if !object.names.is_empty() {
                json.push(b',');
            }
            // A line for each, so that whoever reads the object and stumbles can tell over what.
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

/// An offence, said of the member that it is in.
fn line(offence: &Violation) -> String {
    match offence.pointer().strip_prefix('/') {
        Some(name) => {
            let name = name.replace("~1", "/").replace("~0", "~");
            format!("{}: {}", quote_text(&name), offence.message())
        }
        None => offence.message().to_owned(),
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
            return Err(Error::misuse(format!(
                "the field {} is {}, and all that comes is strings; let it be a String, a number, a bool, an enum without data, or an Option of these",
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

    pub(crate) fn is_list(&self) -> bool {
        self.is_list
    }

    /// Writes the value that was given.
    fn write(&self, out: &mut Vec<u8>, given: Given<'_>) {
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

    /// Many forms send what was not filled in as an empty text. Where that is no value, nothing is meant.
    fn is_left_out(&self, text: &str) -> bool {
        let is_value = self.is_list
            || self.kinds.has_strings()
                && (self.values.is_empty() || self.values.iter().any(String::is_empty));
        !self.is_required && !is_value && text.trim().is_empty()
    }
}

/// An object that was read from strings.
#[derive(Debug, Default)]
pub(crate) struct StringObject {
    json: String,
    /// The member on each line, but for the first line.
    names: Vec<String>,
}

impl StringObject {
    /// The object as JSON.
    pub(crate) fn json(&self) -> &str {
        &self.json
    }

    /// What is wrong where a type cannot be read from the JSON though it fits the schema.
    pub(crate) fn explain(&self, error: &serde_json::Error) -> String {
        let text = error.to_string();
        let text = text
            .rsplit_once(" at line ")
            .map_or(&*text, |(text, _)| text);
        let text = shorten(text);
        match error
            .line()
            .checked_sub(2)
            .and_then(|index| self.names.get(index))
        {
            Some(name) => format!("{}: {text}", quote_text(name)),
            None => text,
        }
    }
}
