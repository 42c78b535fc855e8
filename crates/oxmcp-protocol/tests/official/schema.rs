//! The official schemas of the protocol, from the directory that `OXMCP_SCHEMAS` names.
//!
//! The directory has `<revision>.json` for each revision; or `<revision>/schema.json`, with examples next to it, as in
//! the specification's repository; or it is the unpacked npm package of the conformance suite, whose
//! `dist/index.js` holds the schemas of all revisions but the first.

use std::{env, fs, iter::Peekable, path::Path, str::Chars};

use serde_json::{Map, Value};

use super::Revision;

/// One revision's schema.
pub(crate) struct Schema {
    pub(crate) revision: Revision,
    pub(crate) root: Value,
}

impl Schema {
    /// All schemas that there are.
    pub(crate) fn all() -> Vec<Self> {
        let directory = env::var_os("OXMCP_SCHEMAS")
            .expect("OXMCP_SCHEMAS must name a directory with the official schemas");
        let directory = Path::new(&directory);
        let schemas = match fs::read_to_string(directory.join("dist/index.js")) {
            Ok(bundle) => from_bundle(&bundle),
            Err(_) => from_files(directory),
        };
        assert!(
            schemas.len() >= Revision::ALL.len() - 1,
            "there are schemas of {} revisions in {}",
            schemas.len(),
            directory.display()
        );
        schemas
    }

    /// The official examples: the name of a definition, and a text. Few layouts have them.
    pub(crate) fn examples(&self) -> Vec<(String, String)> {
        let directory = env::var_os("OXMCP_SCHEMAS").unwrap_or_default();
        let examples = Path::new(&directory).join(format!("{}/examples", self.revision));
        let files = |directory: &Path| {
            let entries = fs::read_dir(directory).into_iter().flatten();
            entries
                .map(|entry| entry.unwrap().path())
                .collect::<Vec<_>>()
        };
        let mut found = Vec::new();
        for definition in files(&examples) {
            let name = definition.file_name().unwrap().to_string_lossy();
            for file in files(&definition) {
                found.push((name.clone().into_owned(), fs::read_to_string(file).unwrap()));
            }
        }
        found
    }

    /// The definitions by their names.
    pub(crate) fn definitions(&self) -> &Map<String, Value> {
        ["$defs", "definitions"]
            .into_iter()
            .find_map(|key| self.root.get(key)?.as_object())
            .expect("a schema has definitions")
    }

    /// What a `$ref` refers to.
    pub(crate) fn resolve(&self, reference: &str) -> &Value {
        let pointer = reference.strip_prefix('#').expect("references are local");
        self.root
            .pointer(pointer)
            .expect("references lead somewhere")
    }

    /// The methods of a union of requests or notifications. Empty if the schema has no such union.
    pub(crate) fn methods(&self, union: &str) -> Vec<&str> {
        let Some(union) = self.definitions().get(union) else {
            return Vec::new();
        };
        let members = match union.get("anyOf") {
            Some(Value::Array(members)) => members.iter().collect(),
            _ => vec![union],
        };
        let mut methods: Vec<&str> = members
            .into_iter()
            .map(|member| {
                let reference = member["$ref"].as_str();
                let message = reference.map_or(member, |reference| self.resolve(reference));
                let method = &message["properties"]["method"]["const"];
                method.as_str().expect("messages have a method")
            })
            .collect();
        methods.sort_unstable();
        methods
    }
}

fn from_files(directory: &Path) -> Vec<Schema> {
    Revision::ALL
        .into_iter()
        .filter_map(|revision| {
            let text = fs::read_to_string(directory.join(format!("{revision}.json")))
                .or_else(|_| fs::read_to_string(directory.join(format!("{revision}/schema.json"))))
                .ok()?;
            let root = serde_json::from_str(&text).expect("schemas are JSON");
            Some(Schema { revision, root })
        })
        .collect()
}

/// Finds the schemas among the program text of a bundle: object literals, of which each has what only one revision has.
fn from_bundle(bundle: &str) -> Vec<Schema> {
    bundle
        .match_indices("{$schema:`http")
        .filter_map(|(at, _)| Literal(bundle.get(at..)?.chars().peekable()).value())
        .filter_map(|root| {
            let has = |kind: &str, name: &str| root[kind].get(name).is_some();
            let revision = if has("$defs", "DiscoverRequest") {
                Revision::V2026_07_28
            } else if has("$defs", "TaskStatus") && has("$defs", "InitializeRequest") {
                Revision::V2025_11_25
            } else if has("definitions", "ElicitRequest") {
                Revision::V2025_06_18
            } else if has("definitions", "JSONRPCBatchRequest") {
                Revision::V2025_03_26
            } else {
                return None;
            };
            Some(Schema { revision, root })
        })
        .collect()
}

/// The part of JavaScript's literals that a bundler writes data in.
struct Literal<'a>(Peekable<Chars<'a>>);

impl Literal<'_> {
    fn value(&mut self) -> Option<Value> {
        match *self.0.peek()? {
            '{' => self.object(),
            '[' => self.array(),
            quote @ ('`' | '"' | '\'') => self.string(quote).map(Value::String),
            '!' => {
                self.0.next();
                Some(Value::Bool(self.0.next()? == '0'))
            }
            _ => serde_json::from_str(&self.word()).ok(),
        }
    }

    fn object(&mut self) -> Option<Value> {
        self.0.next();
        let mut object = Map::new();
        while self.0.next_if_eq(&'}').is_none() {
            self.0.next_if_eq(&',');
            let key = match *self.0.peek()? {
                quote @ ('`' | '"' | '\'') => self.string(quote)?,
                _ => self.word(),
            };
            self.0.next_if_eq(&':')?;
            object.insert(key, self.value()?);
        }
        Some(Value::Object(object))
    }

    fn array(&mut self) -> Option<Value> {
        self.0.next();
        let mut array = Vec::new();
        while self.0.next_if_eq(&']').is_none() {
            self.0.next_if_eq(&',');
            array.push(self.value()?);
        }
        Some(Value::Array(array))
    }

    fn string(&mut self, quote: char) -> Option<String> {
        self.0.next();
        let mut string = String::new();
        loop {
            match self.0.next()? {
                '\\' => string.push(match self.0.next()? {
                    'n' => '\n',
                    't' => '\t',
                    other => other,
                }),
                end if end == quote => return Some(string),
                other => string.push(other),
            }
        }
    }

    fn word(&mut self) -> String {
        let mut word = String::new();
        while let Some(letter) = self
            .0
            .next_if(|letter| letter.is_alphanumeric() || matches!(letter, '$' | '_' | '-' | '.'))
        {
            word.push(letter);
        }
        word
    }
}
