//! Expansion of the URI templates that servers list, with values of any type.

use serde::Serialize;
use serde_json::Value as Json;

use crate::{
    error::TemplateError,
    types::resources::ResourceTemplate,
    uri_template::{expand::Value, parse::UriTemplate},
};

impl ResourceTemplate {
    /// Expands the template with these values to a percent-encoded URI, for `resources/read`.
    ///
    /// The values are given by any type that serializes to a JSON object: a struct, a map, `json!({…})`. Strings,
    /// numbers and booleans are single values, arrays and objects are lists and sets of pairs. Variables without a
    /// value are left out, as the [RFC](https://www.rfc-editor.org/rfc/rfc6570) specifies; members that are not
    /// variables are ignored.
    ///
    /// ```
    /// use oxmcp_protocol::ResourceTemplate;
    /// use serde_json::json;
    ///
    /// let template = ResourceTemplate::new("db://{table}/{id}{?columns*}", "row");
    /// let uri = template.expand(json!({"table": "a/b", "id": 7, "columns": ["x", "y"]}))?;
    /// assert_eq!(uri, "db://a%2Fb/7?columns=x&columns=y");
    /// # Ok::<(), oxmcp_protocol::TemplateError>(())
    /// ```
    ///
    /// # Errors
    /// If the pattern is not a URI template, or the values are not an object.
    pub fn expand(&self, values: impl Serialize) -> Result<String, TemplateError> {
        let template = UriTemplate::parse(&self.uri_template).map_err(|problem| {
            TemplateError::new(format!(
                "invalid resource template {:?}: {problem}",
                self.uri_template
            ))
        })?;
        let values = match serde_json::to_value(values) {
            Ok(Json::Object(values)) => values,
            Ok(Json::Null) => serde_json::Map::new(),
            Ok(_) => {
                let message = "the values of the variables must be an object";
                return Err(TemplateError::new(message));
            }
            Err(error) => {
                let message = format!("could not serialize the values of the variables: {error}");
                return Err(TemplateError::from_json(message, error));
            }
        };
        let values: Vec<_> = values
            .into_iter()
            .map(|(name, value)| (name, variable(value)))
            .collect();
        Ok(template.expand(|name| {
            let mut values = values.iter();
            values.find(|(known, _)| known == name)?.1.as_ref()
        }))
    }
}

fn variable(value: Json) -> Option<Value> {
    match value {
        Json::Null => None,
        Json::Array(items) => Some(Value::List(items.into_iter().filter_map(text).collect())),
        Json::Object(members) => {
            let pairs = members.into_iter();
            let pairs = pairs.filter_map(|(key, value)| Some((key, text(value)?)));
            Some(Value::Pairs(pairs.collect()))
        }
        scalar => text(scalar).map(Value::Text),
    }
}

/// A value as text; a list within a list is written as JSON.
fn text(value: Json) -> Option<String> {
    match value {
        Json::Null => None,
        Json::String(text) => Some(text),
        other => Some(other.to_string()),
    }
}
