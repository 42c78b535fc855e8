//! `x-mcp-header` annotations in the schema of a tool's input.
//!
//! See [schema extension](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#schema-extension).

use std::{collections::HashSet, mem::size_of};

use oxmcp_json::{Text, pointer_token};

/// The keyword in the schema of a property that names its header.
const ANNOTATION: &str = "x-mcp-header";

/// The error for a tool whose annotations take more memory than allowed.
pub(crate) const TOO_MUCH: &str = "its mirrored headers exceed `ClientLimits::max_mirrored_bytes`";
/// The maximum number of characters of a pointer in an error message.
const MAX_POINTER: usize = 200;

/// Keywords that hold one schema.
const ONE: &[&str] = &[
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords that hold a list of schemas.
const LIST: &[&str] = &["allOf", "anyOf", "items", "oneOf", "prefixItems"];
/// Keywords that hold schemas by name. `properties`, which also does, is handled separately.
const NAMED: &[&str] = &[
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
];

/// A property whose schema has an `x-mcp-header` annotation.
#[derive(Debug)]
pub(crate) struct Annotation {
    /// The path of property names from the arguments to the property.
    pub(crate) path: Box<[Box<str>]>,
    /// The name of its header, without the prefix `Mcp-Param-`.
    pub(crate) name: String,
}

/// The memory that an annotation takes, in bytes: the struct and the names of its path.
pub(crate) fn size(path: &[Box<str>], name: &str) -> usize {
    let way = path
        .iter()
        .map(|name| name.len() + size_of::<Box<str>>())
        .sum::<usize>();
    size_of::<Annotation>() + name.len() + way
}

/// Finds all annotations of a schema. Together they may take at most `max_bytes` of memory.
///
/// # Errors
/// The reason why an annotation is not allowed, with a pointer to its schema; or the annotations take more than
/// `max_bytes`.
pub(crate) fn find(schema: Text<'_>, max_bytes: usize) -> Result<Vec<Annotation>, String> {
    let text = schema.get();
    // Few schemas have annotations; a keyword with escapes could be one, too.
    if !text.contains(ANNOTATION) && !text.contains('\\') {
        return Ok(Vec::new());
    }
    let mut search = Search {
        pointer: String::new(),
        path: Some(Vec::new()),
        found: Vec::new(),
        taken: HashSet::new(),
        bytes_left: max_bytes,
    };
    search.schema(schema)?;
    Ok(search.found)
}

struct Search {
    /// The position of the search in the schema.
    pointer: String,
    /// The matching path in the arguments; `None` if the schema applies to no definite place.
    path: Option<Vec<Box<str>>>,
    found: Vec<Annotation>,
    /// The header names already used, in lower case.
    taken: HashSet<String>,
    /// The number of bytes that annotations may still take. Each property keeps a copy of all names of its path, so a
    /// name near the root is counted for every property below it.
    bytes_left: usize,
}

impl Search {
    fn schema(&mut self, schema: Text<'_>) -> Result<(), String> {
        self.annotation(schema)?;
        for (key, value) in schema.members() {
            let Some(key) = key.as_str() else { continue };
            let key = &*key;
            if key == "properties" {
                self.properties(value)?;
            } else {
                self.keyword(key, value)?;
            }
        }
        Ok(())
    }

    /// Searches `properties`, the only keyword below which annotations are allowed.
    fn properties(&mut self, properties: Text<'_>) -> Result<(), String> {
        for (name, schema) in properties.members() {
            let Some(name) = name.as_str() else { continue };
            if let Some(path) = &mut self.path {
                path.push((*name).into());
            }
            self.below(&["properties", &name], schema)?;
            if let Some(path) = &mut self.path {
                path.pop();
            }
        }
        Ok(())
    }

    /// Searches any other keyword: annotations below it are errors.
    fn keyword(&mut self, key: &str, value: Text<'_>) -> Result<(), String> {
        let path = self.path.take();
        if ONE.contains(&key) {
            self.below(&[key], value)?;
        }
        if LIST.contains(&key) {
            for (index, schema) in value.items().enumerate() {
                self.below(&[key, &index.to_string()], schema)?;
            }
        }
        if NAMED.contains(&key) {
            for (name, schema) in value.members() {
                let Some(name) = name.as_str() else { continue };
                self.below(&[key, &name], schema)?;
            }
        }
        self.path = path;
        Ok(())
    }

    fn below(&mut self, steps: &[&str], schema: Text<'_>) -> Result<(), String> {
        let length = self.pointer.len();
        for step in steps {
            self.pointer.push('/');
            self.pointer.push_str(&pointer_token(step));
        }
        self.schema(schema)?;
        self.pointer.truncate(length);
        Ok(())
    }

    /// Records the annotation of one schema, if it has one.
    fn annotation(&mut self, schema: Text<'_>) -> Result<(), String> {
        let mut annotations = schema
            .members()
            .filter(|(key, _)| key.is_str(ANNOTATION))
            .map(|(_, value)| value);
        let Some(annotation) = annotations.next() else {
            return Ok(());
        };
        if annotations.next().is_some() {
            return Err(self.wrong("duplicate key"));
        }
        let name = annotation
            .as_str()
            .ok_or_else(|| self.wrong("must be a string"))?;
        self.check_name(&name)?;
        self.check_type(schema)?;
        let Some(path) = self.path.as_deref().filter(|path| !path.is_empty()) else {
            return Err(
                self.wrong("only allowed in properties that are reached through `properties`")
            );
        };
        let Some(bytes_left) = self.bytes_left.checked_sub(size(path, &name)) else {
            return Err(TOO_MUCH.to_owned());
        };
        self.bytes_left = bytes_left;
        self.found.push(Annotation {
            path: path.into(),
            name: name.into_owned(),
        });
        Ok(())
    }

    fn check_name(&mut self, name: &str) -> Result<(), String> {
        if name.is_empty() {
            return Err(self.wrong("must not be empty"));
        }
        if let Some(wrong) = name.chars().find(|char| !is_token(*char)) {
            return Err(self.wrong(&format!("{wrong:?} is not allowed in a header name")));
        }
        if !self.taken.insert(name.to_ascii_lowercase()) {
            let name: String = name.chars().take(MAX_POINTER).collect();
            return Err(self.wrong(&format!("duplicate header {name:?}")));
        }
        Ok(())
    }

    /// Checks that the type is string, integer or boolean, or a list of one of these and null.
    fn check_type(&self, schema: Text<'_>) -> Result<(), String> {
        let is_scalar = |kind: &Text<'_>| {
            let kinds = ["string", "integer", "boolean"];
            kinds.into_iter().any(|scalar| kind.is_str(scalar))
        };
        let mut types = schema.members().filter(|(key, _)| key.is_str("type"));
        let fits = types.next().is_some_and(|(_, kind)| {
            let mut kinds: Vec<Text<'_>> = kind.items().collect();
            kinds.retain(|kind| !kind.is_str("null"));
            is_scalar(&kind) || matches!(&kinds[..], [kind] if is_scalar(kind))
        });
        if fits {
            return Ok(());
        }
        Err(self.wrong("the property must have the type string, integer or boolean"))
    }

    fn wrong(&self, reason: &str) -> String {
        let pointer = if self.pointer.is_empty() {
            "/"
        } else {
            &self.pointer
        };
        let reason = format!("of the input schema: {reason}");
        let mut short: String = pointer.chars().take(MAX_POINTER).collect();
        if short.len() < pointer.len() {
            short.push('…');
        }
        format!("`{ANNOTATION}` at {short} {reason}")
    }
}

/// Whether header names may contain the character.
/// See [tokens](https://datatracker.ietf.org/doc/html/rfc9110#section-5.6.2).
fn is_token(char: char) -> bool {
    char.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(char)
}
