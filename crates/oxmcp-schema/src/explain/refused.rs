//! Search for properties that a type refuses although its schema accepts them, such as `5000000000` for a `u32`.

use oxmcp_json::{Text, pointer_token};
use serde::de::{DeserializeOwned, DeserializeSeed};
use serde_json::{Deserializer, Result, de::StrRead};

use super::watched_object::{Watch, read_watched};

/// The maximum length of a shown name, in characters.
const SHOWN: usize = 100;

/// The JSON pointer of the property of an object whose name or value `T` does not accept. `None` if the refusal has
/// another cause.
#[must_use]
pub(crate) fn refused_property<T: DeserializeOwned>(object: Text<'_>) -> Option<String> {
    let mut place = MemberWatch::default();
    read_watched::<T>(object, &mut place).err()?;
    let name: String = place.at?.chars().take(SHOWN).collect();
    Some(format!("/{}", pointer_token(&name)))
}

/// The name of the member that is being read.
#[derive(Default)]
struct MemberWatch {
    at: Option<String>,
}

impl Watch for MemberWatch {
    fn member(&mut self, name: Option<&str>) {
        self.at = name.map(str::to_owned);
    }

    fn read<'de, V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
        mut json: Deserializer<StrRead<'de>>,
    ) -> Result<V::Value> {
        seed.deserialize(&mut json)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "they are there to be read")]
    struct Order {
        count: u32,
        #[serde(rename = "a/b~c")]
        odd: Option<u8>,
        #[serde(default)]
        inner: BTreeMap<String, u8>,
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "they are there to be read")]
    struct Flat {
        x: u32,
        #[serde(flatten)]
        rest: BTreeMap<String, u8>,
    }

    fn refused<T: DeserializeOwned>(json: &str) -> Option<String> {
        refused_property::<T>(Text::checked(json))
    }

    #[test]
    fn refused_property_is_named_without_guessing() {
        let table = [
            (r#"{"count": 1.0}"#, Some("/count")),
            (r#"{"count": 1, "count": 2}"#, Some("/count")),
            (r#"{"count": 1, "a/b~c": 2e2}"#, Some("/a~1b~0c")),
            (r#"{"count": 1, "inner": {"x": 1.5}}"#, Some("/inner")),
            (r#"{"a/b~c": 1}"#, None),
            (r#"{"count": 1}"#, None),
        ];
        for (json, expected) in table {
            assert_eq!(refused::<Order>(json).as_deref(), expected, "{json}");
        }
        assert_eq!(
            refused::<Flat>(r#"{"x": 1.0, "y": 1}"#).as_deref(),
            Some("/x")
        );
        assert_eq!(refused::<Flat>(r#"{"x": 1, "y": 1.5}"#), None);
        let long = format!(r#"{{"{}": 1.5}}"#, "x".repeat(100_000));
        let place = refused::<BTreeMap<String, u8>>(&long).unwrap();
        assert_eq!(place.len(), SHOWN + 1);
    }
}
