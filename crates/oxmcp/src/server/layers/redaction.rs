//! Redaction: arguments for a log, without the values that the schema marks as secret.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// The text in place of a secret.
const REDACTED: &str = "[redacted]";
/// The depth to which schemas and arguments are followed together; deeper values are left out.
const DEPTH: usize = 32;
/// The number of characters of a string that are logged.
const SHOWN: usize = 256;
/// The number of values of the arguments that are logged.
const VALUES: usize = 500;

/// The rules by which values are redacted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Redaction {
    /// Further names of properties that are secret, in lower case.
    pub(crate) names: BTreeSet<String>,
}

impl Redaction {
    /// The arguments of a call of a tool with this schema. Without a schema nothing is known, so all values are redacted.
    pub(crate) fn arguments(&self, schema: Option<&Value>, arguments: &Value) -> Value {
        let mut walk = Walk {
            rules: self,
            root: schema,
            left: VALUES,
        };
        match schema {
            Some(schema) => walk.value(&[schema], arguments, DEPTH),
            None => walk.hidden(arguments, DEPTH),
        }
    }
}

struct Walk<'a> {
    rules: &'a Redaction,
    root: Option<&'a Value>,
    left: usize,
}

impl<'a> Walk<'a> {
    /// A value that any of the schemas may describe.
    fn value(&mut self, schemas: &[&'a Value], value: &Value, depth: usize) -> Value {
        let mut all = Vec::new();
        for schema in schemas {
            self.collect(schema, &mut all, DEPTH);
        }
        if all.iter().any(|schema| is_secret(schema)) {
            return REDACTED.into();
        }
        if depth == 0 || self.left == 0 {
            return "…".into();
        }
        self.left -= 1;
        match value {
            Value::Object(members) => {
                let mut shown = Map::new();
                for (name, member) in members {
                    if self.left == 0 {
                        shown.insert("…".to_owned(), Value::Null);
                        break;
                    }
                    let member = match self.rules.names.contains(&name.to_lowercase()) {
                        true => REDACTED.into(),
                        false => self.value(&properties(&all, name), member, depth - 1),
                    };
                    shown.insert(cut(name), member);
                }
                shown.into()
            }
            Value::Array(items) => {
                let schemas = items_of(&all);
                let items = items.iter().take(self.left);
                let items: Vec<_> = items
                    .map(|item| self.value(&schemas, item, depth - 1))
                    .collect();
                items.into()
            }
            Value::String(text) => cut(text).into(),
            other => other.clone(),
        }
    }

    /// A value without any text or number.
    fn hidden(&mut self, value: &Value, depth: usize) -> Value {
        if depth == 0 || self.left == 0 {
            return "…".into();
        }
        self.left -= 1;
        match value {
            Value::Object(members) => {
                let members = members.iter().take(self.left);
                let members: Map<_, _> = members
                    .map(|(name, member)| (cut(name), self.hidden(member, depth - 1)))
                    .collect();
                members.into()
            }
            _ => REDACTED.into(),
        }
    }

    /// A schema, and all that it combines.
    fn collect(&self, schema: &'a Value, all: &mut Vec<&'a Value>, depth: usize) {
        if depth == 0 || all.len() >= VALUES {
            return;
        }
        all.push(schema);
        let target = schema.get("$ref").and_then(Value::as_str);
        let target = target.and_then(|it| it.strip_prefix('#'));
        if let Some(target) = target.and_then(|pointer| self.root?.pointer(pointer)) {
            self.collect(target, all, depth - 1);
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let combined = schema.get(keyword).and_then(Value::as_array);
            for schema in combined.into_iter().flatten() {
                self.collect(schema, all, depth - 1);
            }
        }
        for keyword in ["then", "else"] {
            if let Some(schema) = schema.get(keyword) {
                self.collect(schema, all, depth - 1);
            }
        }
    }
}

fn is_secret(schema: &Value) -> bool {
    schema.get("writeOnly") == Some(&Value::Bool(true))
        || schema.get("format").and_then(Value::as_str) == Some("password")
}

fn properties<'a>(schemas: &[&'a Value], name: &str) -> Vec<&'a Value> {
    let of_schema = |schema: &&'a Value| {
        let listed = schema.get("properties").and_then(|it| it.get(name));
        listed.or_else(|| schema.get("additionalProperties"))
    };
    schemas.iter().filter_map(of_schema).collect()
}

fn items_of<'a>(schemas: &[&'a Value]) -> Vec<&'a Value> {
    let items = schemas.iter().filter_map(|schema| schema.get("items"));
    let firsts = schemas
        .iter()
        .filter_map(|schema| schema.get("prefixItems")?.as_array());
    items.chain(firsts.flatten()).collect()
}

fn cut(text: &str) -> String {
    crate::logged::cut(text, SHOWN).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_that_the_schema_marks_are_hidden() {
        let secret = json!({"type": "string", "writeOnly": true});
        let schema = json!({
            "$defs": {"login": {"properties": {"user": {}, "key": {"format": "password"}}}},
            "properties": {
                "city": {"type": "string"},
                "token": secret,
                "login": {"$ref": "#/$defs/login"},
                "either": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/login"}]},
                "list": {"items": secret},
                "map": {"additionalProperties": secret},
                "loop": {"$ref": "#/properties/loop"},
            }
        });
        let login = json!({"user": "ann", "key": "k"});
        let arguments = json!({
            "city": "Ulm", "token": "t", "login": login, "either": login, "list": ["a", "b"], "map": {"x": 1},
            "loop": 1, "extra": "y", "Card": 3,
        });
        let redaction = Redaction {
            names: BTreeSet::from(["card".to_owned()]),
        };
        let hidden = json!({"user": "ann", "key": "[redacted]"});
        assert_eq!(
            redaction.arguments(Some(&schema), &arguments),
            json!({
                "city": "Ulm", "token": "[redacted]", "login": hidden, "either": hidden,
                "list": ["[redacted]", "[redacted]"], "map": {"x": "[redacted]"},
                "loop": 1, "extra": "y", "Card": "[redacted]",
            })
        );
        let unknown = redaction.arguments(None, &json!({"a": {"b": 1}, "c": ["d"]}));
        assert_eq!(
            unknown,
            json!({"a": {"b": "[redacted]"}, "c": "[redacted]"})
        );
    }

    #[test]
    fn redacted_arguments_are_bounded() {
        let redaction = Redaction::default();
        let mut deep = json!("end");
        for _ in 0..100 {
            deep = json!([deep]);
        }
        let wide: Vec<_> = (0..10_000).collect();
        let arguments = json!({"deep": deep, "wide": wide, "long": "x".repeat(10_000)});
        for schema in [None, Some(json!({}))] {
            let shown = redaction.arguments(schema.as_ref(), &arguments);
            assert!(shown.to_string().len() < 8000);
        }
    }
}
