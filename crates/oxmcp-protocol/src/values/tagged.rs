//! Tagged unions: their variant is named by a member, and they are read without buffering if that member comes first.

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::de::{
    Deserialize, Deserializer, Error, MapAccess, Visitor, value::MapAccessDeserializer,
};
use serde_json::{Value, value::RawValue};

use crate::values::json::JsonObject;

/// A union whose variant is named by the member [`TAG`](Self::TAG).
pub(crate) trait Tagged: Sized {
    /// The name of the member that names the variant.
    const TAG: &'static str;
    /// The tag that is assumed if the member is absent. `None` if the member is required.
    const DEFAULT: Option<&'static str> = None;

    /// [`TAG`](Self::TAG), as the members of a struct, and the [`DEFAULT`](Self::DEFAULT) as JSON.
    const MEMBERS: &'static [&'static str];
    /// The name by which the union announces itself to a lenient deserializer.
    const NAME: &'static str = crate::lenient::TAGGED;

    /// Reads the union from a text.
    fn parse(text: &str) -> serde_json::Result<Self>;

    /// Reads the variant that `tag` names from the other members.
    fn read<'de, D: Deserializer<'de>>(tag: &str, members: D) -> Result<Self, D::Error>;

    /// Keeps an object as the unknown variant, whatever its tag is.
    fn unknown(members: JsonObject) -> Self;

    /// The variant that a bare string stands for, if there is one.
    fn from_text(text: &str) -> Option<Self> {
        let _ = text;
        None
    }
}

pub(crate) fn deserialize<'de, T: Tagged, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    // Like a map, but it tells a lenient deserializer about the tag.
    deserializer.deserialize_struct(T::NAME, T::MEMBERS, TaggedVisitor(PhantomData))
}

struct TaggedVisitor<T>(PhantomData<T>);

impl<'de, T: Tagged> Visitor<'de> for TaggedVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with a `{}`", T::TAG)
    }

    /// A lenient deserializer has failed to read the variant that the tag names.
    fn visit_newtype_struct<D: Deserializer<'de>>(self, members: D) -> Result<T, D::Error> {
        let members = JsonObject::deserialize(members)?;
        let is_typed = members.get(T::TAG).is_some_and(Value::is_string);
        let text = members.get("text").and_then(Value::as_str);
        let untyped = text.filter(|_| !is_typed).and_then(T::from_text);
        Ok(untyped.unwrap_or_else(|| T::unknown(members)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        T::from_text(text).ok_or_else(|| E::custom("expected an object, got a string"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        match map.next_key::<Key<'de>>()? {
            Some(Key(key)) if key == T::TAG => {
                let Key(tag) = map.next_value()?;
                T::read(&tag, MapAccessDeserializer::new(map))
            }
            first => buffered(first.map(|Key(key)| key), map),
        }
    }
}

/// Reads an object whose tag is not its first member, or is absent: the object is written again with the tag first, and read like
/// any other. Deserializing it from its parts would compile additional code for every variant.
fn buffered<'de, T: Tagged, A: MapAccess<'de>>(
    first: Option<Cow<'de, str>>,
    mut map: A,
) -> Result<T, A::Error> {
    let mut tag: Option<Cow<'de, str>> = None;
    let mut members = String::new();
    let mut next = first;
    while let Some(key) = next {
        if key == T::TAG {
            if tag.replace(map.next_value::<Key<'de>>()?.0).is_some() {
                return Err(A::Error::duplicate_field(T::TAG));
            }
        } else {
            let value: Box<RawValue> = map.next_value()?;
            let key = Value::from(&*key);
            members.extend([",", &key.to_string(), ":", value.get()]);
        }
        next = map.next_key::<Key<'de>>()?.map(|Key(key)| key);
    }
    let Some(tag) = tag.as_deref().or(T::DEFAULT) else {
        return Err(A::Error::missing_field(T::TAG));
    };
    let (key, tag) = (Value::from(T::TAG), Value::from(tag));
    T::parse(&format!("{{{key}:{tag}{members}}}"))
        .map_err(|error| A::Error::custom(without_position(&error)))
}

/// The error message without its position, which refers to the rewritten text and not to the received one.
fn without_position(error: &serde_json::Error) -> String {
    let mut text = error.to_string();
    if let Some(end) = text.rfind(" at line ") {
        text.truncate(end);
    }
    text
}

/// Reads an object of an unknown variant with all its members, including the tag.
pub(crate) fn unknown<'de, D: Deserializer<'de>>(
    key: &str,
    tag: &str,
    members: D,
) -> Result<JsonObject, D::Error> {
    let mut object = JsonObject::deserialize(members)?;
    object.insert(key.into(), Value::from(tag));
    Ok(object)
}

/// A string that is borrowed if possible.
struct Key<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;

        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text.into())))
            }
        }

        deserializer.deserialize_str(KeyVisitor)
    }
}

/// Implements `Tagged` and `Deserialize` for a union: each tag has its variant, and `Unknown` is for all other tags.
macro_rules! tagged {
    (
        $name:ident by $key:literal $(or else $default:literal)? $(with text by $text:path)?
        { $( $tag:literal => $variant:ident, )+ }
    ) => {
        impl $crate::values::tagged::Tagged for $name {
            const TAG: &'static str = $key;
            const MEMBERS: &'static [&'static str] = &[$key $(, concat!("\"", $default, "\""))?];
            $( const DEFAULT: Option<&'static str> = Some($default); )?

            fn unknown(members: $crate::values::json::JsonObject) -> Self {
                Self::Unknown(members)
            }

            $(
                const NAME: &'static str = $crate::lenient::BLOCK;

                fn from_text(text: &str) -> Option<Self> {
                    Some($text(text))
                }
            )?

            fn parse(text: &str) -> serde_json::Result<Self> {
                serde_json::from_str(text)
            }

            fn read<'de, D: serde::Deserializer<'de>>(
                tag: &str,
                members: D,
            ) -> Result<Self, D::Error> {
                Ok(match tag {
                    $( $tag => Self::$variant(serde::Deserialize::deserialize(members)?), )+
                    _ => Self::Unknown($crate::values::tagged::unknown($key, tag, members)?),
                })
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::values::tagged::deserialize(deserializer)
            }
        }
    };
}

pub(crate) use tagged;
