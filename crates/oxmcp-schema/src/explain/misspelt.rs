//! Search for misspelled properties: members of an object that its type ignores, with a name close to the name of a
//! missing property.
//!
//! Schemas that are inferred from types allow additional members, since clients add some. An optional property with a
//! misspelled name would then be ignored silently.

use oxmcp_json::Text;
use serde::{
    Deserializer,
    de::{DeserializeOwned, DeserializeSeed, Visitor},
    forward_to_deserialize_any,
};
use serde_json::{Error, Result, de::StrRead};

use super::watched_object::{Watch, read_watched};
use crate::{
    explain::{
        expected::quote_text,
        spelling::{is_near_miss, normalized},
    },
    infer::order,
    schema::Schema,
};

/// The maximum number of members that are compared: usually only one or two are misspelled, and each comparison takes
/// work.
const MAX_SEARCHED: usize = 32;

/// Returns the message for a member whose name is a misspelled property name, if there is one. `T` is the type that the
/// object was already read into: only members that the type ignores can be misspelled.
#[must_use]
pub fn misspelt_property<T: DeserializeOwned>(schema: &Schema, object: Text<'_>) -> Option<String> {
    let properties = order::property_names(schema.marked());
    let is_given = |name: &str| object.members().any(|(key, _)| key.is_str(name));
    let names = object.members().filter_map(|(key, _)| key.as_str());
    let strangers = names.filter(|name| !properties.contains(&&**name));
    let known = properties
        .iter()
        .filter_map(|it| Some((it, normalized(it)?)));
    let known: Vec<_> = known.collect();
    for stranger in strangers.take(MAX_SEARCHED) {
        let Some(letters) = normalized(&stranger) else {
            continue;
        };
        let mut near = known.iter().filter(|(_, it)| is_near_miss(&letters, it));
        let Some((meant, _)) = near.find(|(name, _)| !is_given(name)) else {
            continue;
        };
        // Serde may know the member by another name than the schema.
        if ignores::<T>(object, &stranger) {
            let (stranger, meant) = (quote_text(&stranger), quote_text(meant));
            return Some(format!("{stranger} is not accepted; did you mean {meant}?"));
        }
    }
    None
}

/// Whether `T` skips the member of this name without reading its value.
fn ignores<T: DeserializeOwned>(object: Text<'_>, name: &str) -> bool {
    let mut stranger = Stranger {
        name,
        is_next: false,
        is_ignored: false,
    };
    read_watched::<T>(object, &mut stranger).is_ok() && stranger.is_ignored
}

/// A [`Watch`] that records whether the value of a member is ignored.
struct Stranger<'a> {
    name: &'a str,
    is_next: bool,
    is_ignored: bool,
}

impl Watch for Stranger<'_> {
    fn member(&mut self, name: Option<&str>) {
        self.is_next = name == Some(self.name);
    }

    fn read<'de, V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
        mut json: serde_json::Deserializer<StrRead<'de>>,
    ) -> Result<V::Value> {
        if !self.is_next {
            return seed.deserialize(&mut json);
        }
        let is_ignored = &mut self.is_ignored;
        seed.deserialize(WatchedValue { json, is_ignored })
    }
}

/// A deserializer for the value of the member.
struct WatchedValue<'de, 'a> {
    json: serde_json::Deserializer<StrRead<'de>>,
    is_ignored: &'a mut bool,
}

impl<'de> Deserializer<'de> for WatchedValue<'de, '_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value> {
        self.json.deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value> {
        self.json.deserialize_option(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        self.json.deserialize_newtype_struct(name, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.json.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        *self.is_ignored = true;
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;
    use crate::JsonSchema;

    #[derive(Deserialize, crate::JsonSchema)]
    #[expect(dead_code, reason = "they are there to be read")]
    struct Note {
        id: u32,
        #[serde(default, alias = "txet")]
        text: Option<String>,
        #[serde(default)]
        max_results: Option<u32>,
        #[serde(default)]
        mode: Option<BTreeMap<String, u8>>,
        #[serde(default)]
        x: Option<u8>,
    }

    #[derive(Deserialize, crate::JsonSchema)]
    #[expect(dead_code, reason = "they are there to be read")]
    struct Open {
        text: Option<String>,
        #[serde(flatten)]
        rest: BTreeMap<String, String>,
    }

    fn misspelt<T: DeserializeOwned + JsonSchema>(json: &str) -> Option<String> {
        misspelt_property::<T>(&Schema::of::<T>(), Text::checked(json))
    }

    #[test]
    fn misspelled_member_is_matched_to_missing_property() {
        let table = [
            (r#"{"id":1,"txt":"x"}"#, Some(("txt", "text"))),
            (r#"{"id":1,"Text":"x"}"#, Some(("Text", "text"))),
            (
                r#"{"id":1,"maxResults":1}"#,
                Some(("maxResults", "max_results")),
            ),
            (
                r#"{"id":1,"max_result":[1]}"#,
                Some(("max_result", "max_results")),
            ),
            (r#"{"id":1,"\u0074xt":"x"}"#, Some(("txt", "text"))),
            (r#"{"a":0,"id":1,"modes":{}}"#, Some(("modes", "mode"))),
            // The property is given, so the member is not a misspelling of it.
            (r#"{"id":1,"text":"y","txt":"x"}"#, None),
            // Serde reads the member.
            (r#"{"id":1,"txet":"x"}"#, None),
            // Members that clients add.
            (r#"{"id":1,"toolCallId":"x"}"#, None),
            (
                r#"{"id":1,"sessionId":"x","action":"y","y":1,"_meta":{}}"#,
                None,
            ),
            (r#"{"id":1}"#, None),
            ("[]", None),
        ];
        for (json, expected) in table {
            let expected = expected.map(|(given, meant)| {
                format!("{given:?} is not accepted; did you mean {meant:?}?")
            });
            assert_eq!(misspelt::<Note>(json), expected, "{json}");
        }
        assert_eq!(misspelt::<Open>(r#"{"txt":"x"}"#), None);
    }

    #[test]
    fn misspelling_search_examines_a_bounded_number_of_members() {
        let many: Vec<_> = (0..50).map(|n| format!("\"z{n}\":0")).collect();
        let json = format!("{{\"id\":1,{},\"txt\":\"x\"}}", many.join(","));
        assert_eq!(misspelt::<Note>(&json), None);
    }
}
