//! Variables of a resource template in a URI, decoded.

use std::sync::Arc;

use oxmcp_protocol::{
    internal::uri::decode,
    uri_template::{Captured, Captures},
};
use oxmcp_schema::internal::{StringValue, quote_text};

/// The values of a template's variables in a URI, decoded; for a handler of
/// [`ResourceTemplate::dynamic`](crate::ResourceTemplate::dynamic).
///
/// The client chooses the values, which can be anything. Even the value of a plain `{x}` can be `..` or contain slashes, since
/// `%2F` is decoded: do not use it as a path.
#[derive(Clone, Debug)]
pub struct TemplateVariables {
    uri: Arc<str>,
    values: Vec<(Arc<str>, Values)>,
}

#[derive(Clone, Debug)]
enum Values {
    /// The decoded value, and the parts between its commas, each decoded separately.
    One(String, Vec<String>),
    Many(Vec<String>),
}

impl TemplateVariables {
    /// Decodes the captures of a match.
    ///
    /// # Errors
    /// The variable whose value is not UTF-8.
    pub(crate) fn of(uri: &Arc<str>, captures: &Captures) -> Result<Self, String> {
        let mut values = Vec::with_capacity(captures.len());
        for (name, captured) in captures {
            let text = |raw: &str| {
                let text = decode(raw).and_then(|bytes| String::from_utf8(bytes).ok());
                text.ok_or_else(|| {
                    format!(
                        "{}: {} does not decode to UTF-8",
                        quote_text(name),
                        quote_text(raw)
                    )
                })
            };
            let value = match captured {
                Captured::One(raw) => {
                    let pieces = raw.split(',').map(text).collect::<Result<_, _>>()?;
                    Values::One(text(raw)?, pieces)
                }
                Captured::Many(raws) => {
                    let items = raws.iter().map(|raw| text(raw));
                    Values::Many(items.collect::<Result<_, _>>()?)
                }
            };
            values.push((Arc::clone(name), value));
        }
        Ok(Self {
            uri: Arc::clone(uri),
            values,
        })
    }

    /// Returns the URI of the request, as the client sent it.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Returns the value of a variable; of a list, the first value. `None` if the URI has none.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        match self.find(name)? {
            Values::One(value, _) => Some(value),
            Values::Many(values) => values.first().map(String::as_str),
        }
    }

    /// Returns all values of a variable; only a list (`{variable*}`) has several.
    pub fn get_all(&self, name: &str) -> impl Iterator<Item = &str> {
        let values = match self.find(name) {
            None => &[][..],
            Some(Values::One(value, _)) => std::slice::from_ref(value),
            Some(Values::Many(values)) => values,
        };
        values.iter().map(String::as_str)
    }

    /// Returns the names of the variables that have a value, in the order of the template.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|(name, _)| &**name)
    }

    fn find(&self, name: &str) -> Option<&Values> {
        let mut values = self.values.iter();
        values
            .find(|(known, _)| **known == *name)
            .map(|(_, value)| value)
    }

    /// The values, for a handler that deserializes them to a type.
    pub(crate) fn given(&self) -> impl Iterator<Item = (&str, StringValue<'_>)> {
        self.values.iter().map(|(name, value)| {
            let given = match value {
                Values::One(text, pieces) => StringValue { text, pieces },
                Values::Many(values) => StringValue {
                    text: values.first().map_or("", String::as_str),
                    pieces: values,
                },
            };
            (&**name, given)
        })
    }
}
