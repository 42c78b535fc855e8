//! Rules of hosts and model APIs about schemas, as they document them or as their error messages state them.

use serde_json::{Map, Value};

use crate::{
    hosts::listed::REFUSED_AT_ROOT,
    infer::{portable::FORMATS, references::target},
};

/// The maximum depth of objects and arrays in strict mode.
const MAX_DEPTH: usize = 10;
/// The maximum length of a property's name.
const MAX_NAME: usize = 64;
/// The maximum number of findings in one schema: an author fixes a few at a time.
const MAX_FINDINGS: usize = 64;

/// A part of a schema that some hosts do not accept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "only the SDK may use it")]
pub struct SchemaFinding {
    /// The name of the rule.
    pub id: &'static str,
    /// The JSON Pointer into the schema.
    pub pointer: String,
    /// The behavior of hosts.
    pub effect: &'static str,
    /// The remedy.
    pub remedy: &'static str,
    /// Whether hosts refuse all tools of the request.
    pub is_severe: bool,
}

/// A rule: its name, the behavior of hosts, and the remedy.
struct Rule(&'static str, &'static str, &'static str);

const REFUSE_ALL: &str = "Claude and OpenAI refuse all tools of the request";
const REFUSES_ALL: &str = "Claude refuses all tools of the request";

const ROOT_UNION: Rule = Rule(
    "root-union",
    REFUSE_ALL,
    "use one object with the properties of all forms, or remove `exact_schema`, which prevents that",
);
const ROOT_NOT_OBJECT: Rule = Rule(
    "root-not-object",
    "model APIs and clients before 2026-07-28 refuse the tool",
    "set \"type\": \"object\" at the root",
);
const NO_PROPERTIES: Rule = Rule(
    "no-properties",
    "OpenAI and Gemini refuse the tool",
    "add \"properties\": {}",
);
const NO_ITEMS: Rule = Rule(
    "no-items",
    "VS Code, Copilot and OpenAI refuse the tool",
    "add \"items\" with the schema of the items",
);
const REFERENCE: Rule = Rule(
    "reference",
    "Gemini and several editors do not resolve references",
    "inline the schema instead of referring to it",
);
const BOOLEAN_SCHEMA: Rule = Rule(
    "boolean-schema",
    "Gemini and Copilot refuse the tool",
    "write {} for a property that accepts any value, and remove a property that accepts none",
);
const TYPE_ARRAY: Rule = Rule(
    "type-array",
    "Gemini refuses the tool",
    "use \"anyOf\" with one type in each form",
);
const CONST: Rule = Rule(
    "const",
    "Gemini and Cursor ignore or refuse it",
    "use \"enum\" with one value",
);
const NULLABLE: Rule = Rule(
    "nullable",
    "hosts ignore it, since it is not a keyword of JSON Schema",
    "leave the property out of \"required\", or use \"anyOf\" with {\"type\": \"null\"}",
);
const BOOLEAN_LIMIT: Rule = Rule(
    "boolean-limit",
    "hosts that expect a later dialect than draft-04 refuse the tool",
    "set \"exclusiveMinimum\" or \"exclusiveMaximum\" to the limit itself",
);
const UNKNOWN_FORMAT: Rule = Rule(
    "unknown-format",
    "OpenAI and Gemini refuse the tool",
    "leave the format out, or describe it in \"description\"",
);
const EMPTY_VALUE: Rule = Rule(
    "empty-enum-value",
    "Gemini refuses the tool",
    "leave \"\" out, and make the property optional",
);
const EMPTY_ENUM: Rule = Rule(
    "empty-enum",
    "model APIs refuse the tool",
    "list the accepted values, or remove \"enum\"",
);
const PROPERTY_NAME: Rule = Rule(
    "property-name",
    REFUSES_ALL,
    "use 1 to 64 of the characters A-Z, a-z, 0-9, '_', '-' and '.'",
);
const TOO_DEEP: Rule = Rule(
    "too-deep",
    "OpenAI refuses the tool in strict mode",
    "nest at most 10 objects and arrays",
);
const CONDITION: Rule = Rule(
    "condition",
    "most hosts ignore the keyword or refuse the tool",
    "describe the condition in \"description\"; calls are validated anyway",
);

/// The keywords that depend on other parts of the value.
const CONDITIONS: [&str; 9] = [
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "unevaluatedProperties",
    "unevaluatedItems",
    "propertyNames",
];

/// Checks a schema, as it is listed, against the rules.
#[must_use]
pub fn check_for_hosts(schema: &Value) -> Vec<SchemaFinding> {
    let mut checker = Checker {
        root: schema,
        findings: Vec::new(),
    };
    checker.root();
    checker.schema(schema, "", 0);
    checker.findings
}

struct Checker<'a> {
    root: &'a Value,
    findings: Vec<SchemaFinding>,
}

impl<'a> Checker<'a> {
    fn report(&mut self, rule: &Rule, pointer: &str) {
        let Rule(id, effect, remedy) = *rule;
        let pointer = pointer.to_owned();
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(SchemaFinding {
                id,
                pointer,
                effect,
                remedy,
                is_severe: effect == REFUSE_ALL || effect == REFUSES_ALL,
            });
        }
    }

    fn root(&mut self) {
        if self.root.get("type").is_none_or(|kind| kind != "object") {
            self.report(&ROOT_NOT_OBJECT, "");
        } else if !self.root.get("properties").is_some_and(Value::is_object) {
            self.report(&NO_PROPERTIES, "");
        }
        for keyword in REFUSED_AT_ROOT {
            if self.root.get(keyword).is_some() {
                self.report(&ROOT_UNION, &format!("/{keyword}"));
            }
        }
    }

    fn schema(&mut self, schema: &'a Value, pointer: &str, depth: usize) {
        let Value::Object(map) = schema else {
            return self.report(&BOOLEAN_SCHEMA, pointer);
        };
        if depth == MAX_DEPTH + 1 {
            self.report(&TOO_DEEP, pointer);
        }
        self.keywords(map, pointer);
        self.names(map, pointer);
        let nested =
            depth + usize::from(map.contains_key("properties") || map.contains_key("items"));
        let mut subschemas = Vec::new();
        collect(map, pointer, &mut subschemas);
        for (subschema, pointer) in subschemas {
            self.schema(subschema, &pointer, nested);
        }
    }

    fn keywords(&mut self, map: &'a Map<String, Value>, pointer: &str) {
        let at = |keyword: &str| format!("{pointer}/{keyword}");
        match map.get("type") {
            Some(Value::Array(_)) => self.report(&TYPE_ARRAY, &at("type")),
            Some(kind) if kind == "array" && !map.get("items").is_some_and(Value::is_object) => {
                self.report(&NO_ITEMS, pointer);
            }
            _ => {}
        }
        if map.contains_key("prefixItems")
            && !map.contains_key("items")
            && !map.contains_key("type")
        {
            self.report(&NO_ITEMS, pointer);
        }
        if let Some(reference) = map.get("$ref")
            && !self.is_recursive(reference)
        {
            self.report(&REFERENCE, &at("$ref"));
        }
        if map.contains_key("const") && !pointer.is_empty() {
            self.report(&CONST, &at("const"));
        }
        if map.contains_key("nullable") {
            self.report(&NULLABLE, &at("nullable"));
        }
        for keyword in ["exclusiveMinimum", "exclusiveMaximum"] {
            if map.get(keyword).is_some_and(Value::is_boolean) {
                self.report(&BOOLEAN_LIMIT, &at(keyword));
            }
        }
        let format = map.get("format").and_then(Value::as_str);
        if format.is_some_and(|format| !FORMATS.contains(&format)) {
            self.report(&UNKNOWN_FORMAT, &at("format"));
        }
        if let Some(Value::Array(values)) = map.get("enum") {
            if values.is_empty() {
                self.report(&EMPTY_ENUM, &at("enum"));
            } else if values.iter().any(|value| value == "") {
                self.report(&EMPTY_VALUE, &at("enum"));
            }
        }
        for keyword in CONDITIONS {
            if map.contains_key(keyword) {
                self.report(&CONDITION, &at(keyword));
            }
        }
    }

    fn names(&mut self, map: &Map<String, Value>, pointer: &str) {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let properties = map.get("properties").and_then(Value::as_object);
        for name in properties.into_iter().flat_map(Map::keys) {
            if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(is_allowed) {
                let name = oxmcp_json::pointer_token(name);
                self.report(&PROPERTY_NAME, &format!("{pointer}/properties/{name}"));
            }
        }
    }

    /// Whether the target of a reference contains the same reference: such a schema cannot be written without one.
    fn is_recursive(&self, reference: &Value) -> bool {
        let Some(start) = target(reference, self.root) else {
            return false;
        };
        let mut seen: Vec<&Value> = Vec::new();
        let mut open = vec![start];
        while let Some(schema) = open.pop() {
            let mut references = Vec::new();
            references_in(schema, &mut references);
            for found in references {
                if found == reference {
                    return true;
                }
                if !seen.contains(&found) {
                    seen.push(found);
                    open.extend(target(found, self.root));
                }
            }
        }
        false
    }
}

/// The direct subschemas of a schema with their pointers. Other than for inference, boolean schemas count.
fn collect<'a>(map: &'a Map<String, Value>, pointer: &str, found: &mut Vec<(&'a Value, String)>) {
    for (keyword, value) in map {
        match (keyword.as_str(), value) {
            (
                "properties" | "patternProperties" | "$defs" | "definitions",
                Value::Object(named),
            ) => {
                for (name, schema) in named {
                    let name = oxmcp_json::pointer_token(name);
                    found.push((schema, format!("{pointer}/{keyword}/{name}")));
                }
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems" | "items", Value::Array(schemas)) => {
                let schemas = schemas.iter().enumerate();
                found.extend(schemas.map(|(i, it)| (it, format!("{pointer}/{keyword}/{i}"))));
            }
            ("items" | "not" | "contains" | "additionalProperties", Value::Object(_)) => {
                found.push((value, format!("{pointer}/{keyword}")));
            }
            _ => {}
        }
    }
}

fn references_in<'a>(schema: &'a Value, found: &mut Vec<&'a Value>) {
    match schema {
        Value::Object(map) => {
            for (keyword, value) in map {
                if keyword == "$ref" {
                    found.push(value);
                } else if keyword != "$defs" && keyword != "definitions" {
                    references_in(value, found);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references_in(item, found)),
        _ => {}
    }
}
