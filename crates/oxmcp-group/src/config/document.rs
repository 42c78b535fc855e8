//! A parsed file as a tree whose nodes know their lines: the same tree for JSON with comments and for TOML.

use std::collections::HashSet;

use jsonc_parser::{
    CollectOptions, ParseOptions,
    ast::{ObjectPropName, Value as JsonValue},
    common::Ranged,
    parse_to_ast,
};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// The nesting that is read. Configurations have five levels; the parsers alone would allow more than the stack of a small thread
/// can hold.
const MAX_DEPTH: usize = 64;

/// A value with its line.
#[derive(Debug)]
pub(super) struct Node {
    /// The line of the value's key, or of the value if it has no key; from 1.
    pub(super) line: usize,
    pub(super) value: Value,
}

#[derive(Debug)]
pub(super) enum Value {
    Null,
    Bool(bool),
    /// A number or a date, as it is written.
    Number(String),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

/// The line and the reason for which a text cannot be read.
pub(super) type ParseFailure = (usize, String);

/// The offsets at which the lines of a text begin.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self(ends.map(|(end, _)| end + 1).collect())
    }

    /// The line of an offset, from 1.
    fn at(&self, offset: usize) -> usize {
        self.0.partition_point(|start| *start <= offset) + 1
    }
}

impl Value {
    /// The name of its type, for errors.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Map(_) => "an object",
        }
    }
}

impl Node {
    /// Reads JSON with comments and trailing commas.
    pub(super) fn from_jsonc(text: &str) -> Result<Self, ParseFailure> {
        let options = ParseOptions::default();
        let parsed = parse_to_ast(text, &CollectOptions::default(), &options);
        let parsed = parsed.map_err(|error| {
            let reason = error.kind().to_string();
            (error.line_display(), format!("is not valid JSON: {reason}"))
        })?;
        let lines = Lines::of(text);
        let value = parsed
            .value
            .ok_or_else(|| (1, "is empty; expected an object".to_owned()))?;
        from_json(&value, lines.at(value.range().start), &lines, 0)
    }

    /// Reads TOML.
    pub(super) fn from_toml(text: &str) -> Result<Self, ParseFailure> {
        let lines = Lines::of(text);
        let parsed = DeTable::parse(text).map_err(|error| {
            let line = error.span().map_or(1, |span| lines.at(span.start));
            (line, format!("is not valid TOML: {}", error.message()))
        })?;
        let value = from_table(parsed.get_ref(), &lines, 0)?;
        Ok(Self { line: 1, value })
    }
}

fn too_deep<T>(line: usize) -> Result<T, ParseFailure> {
    let reason = format!("is nested more than {MAX_DEPTH} levels deep");
    Err((line, reason))
}

fn from_json(
    value: &JsonValue<'_>,
    line: usize,
    lines: &Lines,
    depth: usize,
) -> Result<Node, ParseFailure> {
    if depth > MAX_DEPTH {
        return too_deep(line);
    }
    let value = match value {
        JsonValue::NullKeyword(_) => Value::Null,
        JsonValue::BooleanLit(it) => Value::Bool(it.value),
        JsonValue::NumberLit(it) => Value::Number(it.value.to_owned()),
        JsonValue::StringLit(it) => Value::Text(it.value.clone().into_owned()),
        JsonValue::Array(it) => {
            let entries = it.elements.iter().map(|entry| {
                let line = lines.at(entry.range().start);
                from_json(entry, line, lines, depth + 1)
            });
            Value::List(entries.collect::<Result<_, _>>()?)
        }
        JsonValue::Object(it) => {
            let mut seen = HashSet::new();
            let mut members = Vec::with_capacity(it.properties.len());
            for member in &it.properties {
                let line = lines.at(member.range.start);
                let key = match &member.name {
                    ObjectPropName::String(name) => name.value.clone().into_owned(),
                    ObjectPropName::Word(name) => name.value.to_owned(),
                };
                if !seen.insert(key.clone()) {
                    return Err((line, format!("has the key `{key}` twice; remove one")));
                }
                members.push((key, from_json(&member.value, line, lines, depth + 1)?));
            }
            Value::Map(members)
        }
    };
    Ok(Node { line, value })
}

fn from_table(table: &DeTable<'_>, lines: &Lines, depth: usize) -> Result<Value, ParseFailure> {
    let mut members = Vec::with_capacity(table.len());
    for (key, value) in table {
        let line = lines.at(key.span().start);
        members.push((
            key.get_ref().clone().into_owned(),
            from_toml_value(value, line, lines, depth + 1)?,
        ));
    }
    members.sort_by_key(|(_, node)| node.line);
    Ok(Value::Map(members))
}

fn from_toml_value(
    value: &Spanned<DeValue<'_>>,
    line: usize,
    lines: &Lines,
    depth: usize,
) -> Result<Node, ParseFailure> {
    if depth > MAX_DEPTH {
        return too_deep(line);
    }
    let value = match value.get_ref() {
        DeValue::String(it) => Value::Text(it.clone().into_owned()),
        DeValue::Integer(it) => Value::Number(it.as_str().to_owned()),
        DeValue::Float(it) => Value::Number(it.as_str().to_owned()),
        DeValue::Boolean(it) => Value::Bool(*it),
        DeValue::Datetime(it) => Value::Number(it.to_string()),
        DeValue::Array(it) => {
            let entries = it.iter().map(|entry| {
                let line = lines.at(entry.span().start);
                from_toml_value(entry, line, lines, depth + 1)
            });
            Value::List(entries.collect::<Result<_, _>>()?)
        }
        DeValue::Table(it) => from_table(it, lines, depth)?,
    };
    Ok(Node { line, value })
}
