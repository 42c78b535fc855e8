//! Instances of a definition that together cover each member and each variant: the smallest, the largest, and the
//! smallest with each optional member.

use serde_json::{Map, Value, json};

use super::schema::Schema;

/// Instances of a definition.
pub(crate) fn instances(schema: &Schema, definition: &str) -> Vec<Value> {
    Generator { schema }.of(&schema.definitions()[definition], &[])
}

struct Generator<'a> {
    schema: &'a Schema,
}

impl Generator<'_> {
    /// At least one instance, the plainest first.
    fn of(&self, schema: &Value, within: &[&str]) -> Vec<Value> {
        if let Some(reference) = schema["$ref"].as_str() {
            // Only arbitrary JSON refers to itself.
            if within.contains(&reference) {
                return vec![json!("nested")];
            }
            let within = [within, &[reference]].concat();
            return self.of(self.schema.resolve(reference), &within);
        }
        if let Some(value) = schema.get("const") {
            return vec![value.clone()];
        }
        if let Some(values) = schema["enum"].as_array() {
            return values.clone();
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(variants) = schema[key].as_array() {
                return variants.iter().flat_map(|v| self.of(v, within)).collect();
            }
        }
        if let Some(parts) = schema["allOf"].as_array() {
            return self.all_of(parts, within);
        }
        match &schema["type"] {
            Value::Array(kinds) => kinds
                .iter()
                .flat_map(|kind| self.of_type(kind.as_str().unwrap(), schema, within))
                .collect(),
            Value::String(kind) => self.of_type(kind, schema, within),
            _ => vec![
                json!({"any": [1, "thing", null]}),
                json!("thing"),
                json!([1]),
            ],
        }
    }

    fn of_type(&self, kind: &str, schema: &Value, within: &[&str]) -> Vec<Value> {
        match kind {
            "string" => vec![json!(match schema["format"].as_str() {
                Some("byte") => "AQID",
                Some("uri") => "https://example.com/a",
                _ => "text",
            })],
            "integer" => vec![json!(7)],
            "number" => vec![json!(1), json!(0.5)],
            "boolean" => vec![json!(true)],
            "null" => vec![Value::Null],
            "array" => {
                let items = self.of(&schema["items"], within);
                let all = Value::Array(items.clone());
                items
                    .into_iter()
                    .map(|item| json!([item]))
                    .chain([all])
                    .collect()
            }
            "object" => self.object(schema, within),
            other => panic!("a type without instances: {other}"),
        }
    }

    fn object(&self, schema: &Value, within: &[&str]) -> Vec<Value> {
        let Some(properties) = schema["properties"].as_object() else {
            return self.map(schema, within);
        };
        let required = |name: &str| {
            let names = schema["required"].as_array();
            names.is_some_and(|names| names.iter().any(|other| other == name))
        };
        let members: Vec<(&String, Vec<Value>)> = properties
            .iter()
            .map(|(name, schema)| (name, self.of(schema, within)))
            .collect();
        let smallest: Map<String, Value> = members
            .iter()
            .filter(|(name, _)| required(name))
            .map(|(name, values)| ((*name).clone(), values[0].clone()))
            .collect();
        let largest: Map<String, Value> = members
            .iter()
            .map(|(name, values)| ((*name).clone(), values.last().unwrap().clone()))
            .collect();
        let mut objects = vec![Value::Object(smallest.clone()), Value::Object(largest)];
        for (name, values) in members {
            for value in values {
                let mut object = smallest.clone();
                object.insert(name.clone(), value);
                objects.push(Value::Object(object));
            }
        }
        objects.dedup();
        objects
    }

    fn map(&self, schema: &Value, within: &[&str]) -> Vec<Value> {
        let values = match &schema["additionalProperties"] {
            schema @ Value::Object(_) => self.of(schema, within),
            _ => vec![json!(1)],
        };
        let maps = values
            .into_iter()
            .map(|value| json!({"example.com/key": value}));
        maps.collect()
    }

    /// The members of all parts together.
    fn all_of(&self, parts: &[Value], within: &[&str]) -> Vec<Value> {
        let mut wholes = vec![Value::Object(Map::new())];
        for part in parts {
            let instances = self.of(part, within);
            wholes = instances
                .iter()
                .flat_map(|instance| {
                    wholes.iter().map(|whole| {
                        let mut whole = whole.as_object().unwrap().clone();
                        whole.extend(instance.as_object().unwrap().clone());
                        Value::Object(whole)
                    })
                })
                .collect();
        }
        wholes
    }
}
