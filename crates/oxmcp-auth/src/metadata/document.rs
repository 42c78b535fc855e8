//! Bounded parsing of JSON documents from peers: strict first, then lenient, which repairs members of unexpected types.

use std::{cell::Cell, collections::BTreeSet, fmt, iter};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _, MapAccess, SeqAccess, Visitor, value::MapDeserializer},
};
use serde_json::Value;

use crate::error::{AuthError, Result};

/// The most bytes that a document may have.
pub(crate) const MAX_DOCUMENT: usize = 1 << 20;
/// The most entries that a list may have.
const MAX_LIST: usize = 256;
/// The most members that are repaired: more than any of the documents has.
const MAX_MENDED: usize = 64;

/// A deviation in a document that was read anyway, for a log. It contains no values, since they can be secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tolerated {
    /// The document, with its URL if that is known.
    pub document: String,
    /// The member that deviates, or another part of the document.
    pub member: String,
    /// The way it was read.
    pub read_as: &'static str,
}

impl Tolerated {
    pub(crate) fn new(
        document: impl Into<String>,
        member: impl Into<String>,
        read_as: &'static str,
    ) -> Self {
        Self {
            document: document.into(),
            member: member.into(),
            read_as,
        }
    }
}

/// A document without the byte order mark that some servers write before it.
pub(crate) fn without_mark(body: &[u8]) -> &[u8] {
    body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body)
}

/// Parses a document, and notes its deviations. `what` names it in errors, and may include its URL.
pub(crate) fn read<T: DeserializeOwned>(
    body: &[u8],
    what: &str,
    tolerated: &mut Vec<Tolerated>,
) -> Result<T> {
    if body.len() > MAX_DOCUMENT {
        return Err(AuthError::limit(format!(
            "{what} is longer than {MAX_DOCUMENT} bytes"
        )));
    }
    let json = without_mark(body);
    if json.len() < body.len() {
        tolerated.push(Tolerated::new(what, "byte order mark", "absent"));
    }
    let error = match serde_json::from_slice(json) {
        Ok(document) => return Ok(document),
        Err(error) => error,
    };
    if let Some(document) = read_mending(json, what, tolerated) {
        return Ok(document);
    }
    // Only the kind of serde's error is shown: its message can contain values, and values can be secrets.
    let reason = match error.classify() {
        serde_json::error::Category::Data => "a member is missing or has the wrong type",
        serde_json::error::Category::Eof => "JSON is cut off",
        _ => "not JSON",
    };
    Err(AuthError::malformed(format!("invalid {what}: {reason}")))
}

/// The members of an object, each of which may occur only once. An empty list is an empty object.
pub(crate) fn members(json: &[u8]) -> Option<Vec<(String, Value)>> {
    let Members(members) = serde_json::from_slice(json).ok()?;
    Some(members)
}

/// Parses a document whose members may have unexpected types: each of these is read as what it may mean, or else left out.
fn read_mending<T: DeserializeOwned>(
    json: &[u8],
    what: &str,
    tolerated: &mut Vec<Tolerated>,
) -> Option<T> {
    let mut members = members(json)?;
    let mut mended: Vec<Tolerated> = Vec::new();
    // The values that are still to be tried for the member that was repaired last.
    let mut untried: (Option<usize>, Vec<(Value, &'static str)>) = (None, Vec::new());
    for _ in 0..MAX_MENDED {
        let reading = Cell::new(None);
        let mut entries = members.iter().enumerate();
        let entries = iter::from_fn(|| {
            let entry = entries.next();
            reading.set(entry.map(|(index, _)| index));
            entry.map(|(_, (name, value))| (name.as_str(), value))
        });
        match T::deserialize(MapDeserializer::<_, serde_json::Error>::new(entries)) {
            Ok(document) => {
                tolerated.append(&mut mended);
                return Some(document);
            }
            Err(_) => {
                // After the last member the error is that one is missing.
                let index = reading.get()?;
                let (name, value) = members.get_mut(index)?;
                if untried.0 != Some(index) {
                    untried = (Some(index), meant(name, value));
                    mended.push(Tolerated::new(what, name.as_str(), "absent"));
                }
                let note = mended.last_mut()?;
                if untried.1.is_empty() {
                    note.read_as = "absent";
                    members.remove(index);
                    untried.0 = None;
                } else {
                    (*value, note.read_as) = untried.1.remove(0);
                }
            }
        }
    }
    None
}

/// The values that an unexpected one may mean, the likeliest first.
fn meant(name: &str, value: &Value) -> Vec<(Value, &'static str)> {
    match value {
        Value::String(text) if text.eq_ignore_ascii_case("true") => {
            vec![(Value::Bool(true), "true")]
        }
        Value::String(text) if text.eq_ignore_ascii_case("false") => {
            vec![(Value::Bool(false), "false")]
        }
        Value::String(text) => {
            let words = text.split_ascii_whitespace().map(Value::from);
            vec![(words.collect(), "list")]
        }
        Value::Number(number) if name == "client_id" => vec![(number.to_string().into(), "text")],
        Value::Number(number) => vec![(Value::Bool(number.as_f64() != Some(0.0)), "boolean")],
        Value::Array(words) if name == "scope" => {
            let words: Option<Vec<_>> = words.iter().map(Value::as_str).collect();
            let text = words.map(|words| (Value::from(words.join(" ")), "text"));
            text.into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// The parser of [`members`].
struct Members(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let (mut members, mut names) = (Vec::new(), BTreeSet::new());
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    if !names.insert(name.clone()) {
                        return Err(A::Error::custom("duplicate key"));
                    }
                    members.push((name, value));
                }
                Ok(Members(members))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Members, A::Error> {
                match list.next_element::<serde::de::IgnoredAny>()? {
                    None => Ok(Members(Vec::new())),
                    Some(_) => Err(A::Error::custom("expected an object, got an array")),
                }
            }
        }

        from.deserialize_any(Reader)
    }
}

/// A flag whose absence allows more: any value but `false` sets it.
pub(crate) fn demand<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::Null => false,
        Value::Bool(is_set) => is_set,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.eq_ignore_ascii_case("false"),
        _ => true,
    })
}

/// A list of strings. Too many entries are an error, and entries that are not strings are left out.
pub(crate) fn list<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    let Some(list) = Option::<Vec<Value>>::deserialize(from)? else {
        return Ok(None);
    };
    if list.len() > MAX_LIST {
        return Err(D::Error::custom("an array is too long"));
    }
    let strings = list.into_iter().filter_map(|it| match it {
        Value::String(text) => Some(text),
        _ => None,
    });
    Ok(Some(strings.collect()))
}
