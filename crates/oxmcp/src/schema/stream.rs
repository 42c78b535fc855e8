//! The fast check, run: one pass over JSON text, without building a value.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Value, value::RawValue};

use super::check::{Check, Typed, kind};

/// Whether the check accepts the value. False says nothing: the full validator decides.
pub(super) fn accepts(check: &Check, instance: &RawValue) -> bool {
    let mut text = serde_json::Deserializer::from_str(instance.get());
    Accept(check).deserialize(&mut text).is_ok()
}

#[derive(Clone, Copy)]
struct Accept<'a>(&'a Check);

impl<'de> DeserializeSeed<'de> for Accept<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.0 {
            Check::Anything => deserializer.deserialize_ignored_any(IgnoredAny).map(drop),
            Check::Unknown => Err(undecided()),
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'a> Accept<'a> {
    fn typed<E: Error>(self, kind: u8) -> Result<&'a Typed, E> {
        self.0.typed(kind).ok_or_else(undecided)
    }
}

/// Nobody reads this.
#[cold]
fn undecided<E: Error>() -> E {
    E::custom("")
}

fn verdict<E: Error>(accepted: bool) -> Result<(), E> {
    if accepted { Ok(()) } else { Err(undecided()) }
}

impl Typed {
    fn is_listed(&self, is_value: impl Fn(&Value) -> bool) -> bool {
        self.values
            .as_ref()
            .is_none_or(|values| values.iter().any(is_value))
    }

    fn accepts_number(&self, number: f64) -> bool {
        self.numbers
            .as_ref()
            .is_none_or(|numbers| numbers.accepts(number))
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "limits are not compared with integers that are not exact"
)]
impl<'de> Visitor<'de> for Accept<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        verdict(self.typed(kind::NULL)?.is_listed(Value::is_null))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        verdict(
            self.typed(kind::BOOLEAN)?
                .is_listed(|listed| *listed == Value::Bool(value)),
        )
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        let typed = self.typed(kind::INTEGER)?;
        let is_listed = typed.is_listed(|listed| listed.as_i64() == Some(value));
        verdict(is_listed && typed.accepts_number(value as f64))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        let typed = self.typed(kind::INTEGER)?;
        let is_listed = typed.is_listed(|listed| listed.as_u64() == Some(value));
        verdict(is_listed && typed.accepts_number(value as f64))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        let typed = self.typed(kind::FRACTION)?;
        verdict(typed.values.is_none() && typed.accepts_number(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        let typed = self.typed(kind::STRING)?;
        let is_long_enough = |lengths: &super::check::Span| lengths.accepts(value.chars().count());
        let is_listed = typed.is_listed(|listed| listed.as_str() == Some(value));
        verdict(is_listed && typed.lengths.as_ref().is_none_or(is_long_enough))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let typed = self.typed(kind::ARRAY)?;
        if typed.values.is_some() {
            return Err(undecided());
        }
        let mut count = 0_usize;
        while items.next_element_seed(Accept(&typed.items))?.is_some() {
            count += 1;
        }
        verdict(
            typed
                .item_count
                .as_ref()
                .is_none_or(|span| span.accepts(count)),
        )
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let typed = self.typed(kind::OBJECT)?;
        if typed.values.is_some() {
            return Err(undecided());
        }
        // A name that comes twice counts once, and is accepted only if both values are: whichever is taken, it holds.
        let mut seen = 0_u64;
        while let Some(position) = members.next_key_seed(Name(typed))? {
            match position.and_then(|position| Some((position, typed.properties.get(position)?))) {
                Some((position, property)) => {
                    seen |= 1_u64
                        .checked_shl(u32::try_from(position).unwrap_or(u32::MAX))
                        .unwrap_or(0);
                    members.next_value_seed(Accept(&property.check))?;
                }
                None => members.next_value_seed(Accept(&typed.additional))?,
            }
        }
        verdict(seen & typed.required == typed.required)
    }
}

/// The name of a member, as the place of the property that it names.
struct Name<'a>(&'a Typed);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = Option<usize>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        match self.0.position(name) {
            // With the feature `arbitrary_precision`, which any crate can switch on, numbers look like an object.
            None if name.starts_with("$serde_json::") => Err(undecided()),
            position => Ok(position),
        }
    }
}
