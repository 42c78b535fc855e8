//! Frontmatter as JSON: the events of the YAML parser, and the limits.

use std::borrow::Cow;

use oxmcp::protocol::JsonObject;
use saphyr_parser::{Event, Parser, ScalarStyle, Tag};
use serde_json::Value;

use super::{scalar::plain, split::split};

/// The maximum size of a frontmatter in bytes. A host holds that of every skill that it lists.
pub(crate) const MAX_BYTES: usize = 64 << 10;

/// The maximum depth of lists and mappings.
const MAX_DEPTH: usize = 16;

/// Reads the frontmatter of a `SKILL.md`.
///
/// # Errors
/// The first problem, with its line in the file.
pub(crate) fn read(text: &str) -> Result<JsonObject, String> {
    let Some((yaml, _)) = split(text) else {
        return Err(
            "no frontmatter; begin the file with the line \"---\", then `name` and `description`, then \"---\""
                .to_owned(),
        );
    };
    if yaml.len() > MAX_BYTES {
        return Err(format!(
            "the frontmatter is longer than {MAX_BYTES} bytes; shorten it"
        ));
    }
    let mut reader = Reader::default();
    let mut parser = Parser::new_from_str(yaml);
    while let Some(event) = parser.next_event() {
        // The frontmatter begins on the second line of the file.
        let (event, line) = match event {
            Ok((event, span)) => (event, span.start.line() + 1),
            Err(error) => {
                let line = error.marker().line() + 1;
                return Err(format!("line {line}: invalid YAML: {}", error.info()));
            }
        };
        let taken = reader.take(event);
        taken.map_err(|problem| format!("line {line}: {problem}"))?;
    }
    match reader.root {
        Some(Value::Object(object)) => Ok(object),
        Some(_) => Err("the frontmatter must be a mapping, as in `name: refunds`".to_owned()),
        None => Err("the frontmatter is empty; add `name` and `description`".to_owned()),
    }
}

/// A list or mapping that is not complete yet.
enum Open {
    List(Vec<Value>),
    /// The members, and the key whose value comes next.
    Mapping(JsonObject, Option<String>),
}

#[derive(Default)]
struct Reader {
    open: Vec<Open>,
    root: Option<Value>,
    documents: usize,
}

impl Reader {
    fn take(&mut self, event: Event<'_>) -> Result<(), String> {
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                match self.documents {
                    1 => Ok(()),
                    _ => Err("more than one YAML document; keep only one".to_owned()),
                }
            }
            Event::Alias(_) => Err("aliases are not supported; repeat the value".to_owned()),
            Event::Scalar(text, style, anchor, tag) => {
                check(anchor, tag.as_ref())?;
                self.scalar(text, style)
            }
            Event::SequenceStart(anchor, tag) => {
                check(anchor, tag.as_ref())?;
                self.begin(Open::List(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                check(anchor, tag.as_ref())?;
                self.begin(Open::Mapping(JsonObject::new(), None))
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::List(items)) => self.add(Value::Array(items)),
                Some(Open::Mapping(members, _)) => self.add(Value::Object(members)),
                None => Ok(()),
            },
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
        }
    }

    fn begin(&mut self, open: Open) -> Result<(), String> {
        if self.awaits_key() {
            return Err("keys must be strings".to_owned());
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} levels deep; flatten it"));
        }
        self.open.push(open);
        Ok(())
    }

    fn awaits_key(&self) -> bool {
        matches!(self.open.last(), Some(Open::Mapping(_, None)))
    }

    fn scalar(&mut self, text: Cow<'_, str>, style: ScalarStyle) -> Result<(), String> {
        let value = match style {
            ScalarStyle::Plain => plain(&text)?,
            _ => Value::String(text.into_owned()),
        };
        if !self.awaits_key() {
            return self.add(value);
        }
        let Some(Open::Mapping(members, key)) = self.open.last_mut() else {
            return Ok(());
        };
        match value {
            Value::String(text) if text == "<<" && style == ScalarStyle::Plain => {
                Err("merge keys are not supported; repeat the members".to_owned())
            }
            Value::String(text) if members.contains_key(&text) => {
                Err(format!("duplicate key {text:?}; remove one"))
            }
            Value::String(text) => {
                *key = Some(text);
                Ok(())
            }
            other => Err(format!("the key {other} is not a string; quote it")),
        }
    }

    /// Adds a complete value to the list or mapping that is open.
    fn add(&mut self, value: Value) -> Result<(), String> {
        match self.open.last_mut() {
            Some(Open::List(items)) => items.push(value),
            Some(Open::Mapping(members, key)) => {
                if let Some(key) = key.take() {
                    members.insert(key, value);
                }
            }
            None if self.root.is_some() => {
                return Err("more than one value; the frontmatter must be one mapping".to_owned());
            }
            None => self.root = Some(value),
        }
        Ok(())
    }
}

fn check(anchor: usize, tag: Option<&Cow<'_, Tag>>) -> Result<(), String> {
    if anchor != 0 {
        return Err("anchors are not supported; repeat the value".to_owned());
    }
    match tag {
        Some(_) => Err("tags are not supported; remove the tag, or quote the value".to_owned()),
        None => Ok(()),
    }
}
