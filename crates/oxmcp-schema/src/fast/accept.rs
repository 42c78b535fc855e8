//! Fast check at run time: one walk over JSON text, without building a value.

use oxmcp_json::Text;
use serde_json::Value;

use crate::fast::check::{Check, Span, Typed, kind};

/// Whether the check accepts the value. False says nothing: the full validator decides.
pub(crate) fn accepts(check: &Check, instance: Text<'_>) -> bool {
    match check {
        Check::Anything => true,
        Check::Unknown => false,
        _ => accepts_typed(check, instance),
    }
}

fn accepts_typed(check: &Check, instance: Text<'_>) -> bool {
    let text = instance.get();
    match text.as_bytes().first() {
        Some(b'{') => check
            .typed(kind::OBJECT)
            .is_some_and(|typed| object(typed, instance)),
        Some(b'[') => check
            .typed(kind::ARRAY)
            .is_some_and(|typed| array(typed, instance)),
        Some(b'"') => check
            .typed(kind::STRING)
            .is_some_and(|typed| string(typed, instance)),
        Some(b'n') => check
            .typed(kind::NULL)
            .is_some_and(|typed| typed.lists(Value::is_null)),
        Some(b't') => boolean(check, true),
        Some(b'f') => boolean(check, false),
        _ => number(check, text),
    }
}

impl Typed {
    /// Whether the value is one of those that are listed, where any are.
    fn lists(&self, is_value: impl Fn(&Value) -> bool) -> bool {
        let values = self.values.as_ref();
        values.is_none_or(|values| values.iter().any(is_value))
    }

    fn accepts_number(&self, number: f64) -> bool {
        let numbers = self.numbers.as_ref();
        numbers.is_none_or(|numbers| numbers.accepts(number))
    }
}

fn boolean(check: &Check, value: bool) -> bool {
    let typed = check.typed(kind::BOOLEAN);
    typed.is_some_and(|typed| typed.lists(|listed| *listed == Value::Bool(value)))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "limits are not compared with integers that are not exact"
)]
fn integer(check: &Check, integer: i64) -> bool {
    check.typed(kind::INTEGER).is_some_and(|typed| {
        typed.lists(|listed| listed.as_i64() == Some(integer))
            && typed.accepts_number(integer as f64)
    })
}

fn number(check: &Check, text: &str) -> bool {
    if let Ok(value) = text.parse() {
        // `-0` is a fraction for serde_json, which readers of the value may rely on.
        return text != "-0" && integer(check, value);
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Larger than any `i64`: rare enough for the full validator.
        return false;
    }
    let Some(typed) = check.typed(kind::FRACTION) else {
        return false;
    };
    let fraction = text
        .parse()
        .is_ok_and(|number: f64| number.is_finite() && typed.accepts_number(number));
    typed.values.is_none() && fraction
}

fn string(typed: &Typed, instance: Text<'_>) -> bool {
    if typed.values.is_none() && typed.lengths.is_none() {
        return true;
    }
    let Some(value) = instance.as_str() else {
        return false;
    };
    let is_long_enough = |lengths: &Span| lengths.accepts(value.chars().count());
    typed.lists(|listed| listed.as_str() == Some(&*value))
        && typed.lengths.as_ref().is_none_or(is_long_enough)
}

fn array(typed: &Typed, instance: Text<'_>) -> bool {
    if typed.values.is_some() {
        return false;
    }
    let mut count = 0_usize;
    for item in instance.items() {
        if !accepts(&typed.items, item) {
            return false;
        }
        count += 1;
    }
    typed
        .item_count
        .as_ref()
        .is_none_or(|span| span.accepts(count))
}

fn object(typed: &Typed, instance: Text<'_>) -> bool {
    if typed.values.is_some() {
        return false;
    }
    let mut properties = Properties::of(typed);
    for (key, value) in instance.members() {
        let name = key.as_str();
        if !name.is_some_and(|name| properties.accept(&name, value)) {
            return false;
        }
    }
    properties.are_complete()
}

/// The properties of an object, as they are met.
pub(crate) struct Properties<'c> {
    typed: &'c Typed,
    /// The bits of those that were met.
    met: u64,
    /// Whether something was accepted that is none of them.
    pub(crate) has_others: bool,
}

impl<'c> Properties<'c> {
    pub(crate) fn of(typed: &'c Typed) -> Self {
        Self {
            typed,
            met: 0,
            has_others: false,
        }
    }

    /// Whether a property of this name may have this value. A name that comes twice counts once, and is accepted only if
    /// both values are: whichever is taken, it holds.
    pub(crate) fn accept(&mut self, name: &str, value: Text<'_>) -> bool {
        self.meet(name, |check| accepts(check, value))
    }

    /// The same where the value is known to be this integer.
    #[inline]
    pub(crate) fn accept_integer(&mut self, name: &str, value: i64) -> bool {
        self.meet(name, |check| match check {
            Check::Anything => true,
            check => integer(check, value),
        })
    }

    /// Whether a property of this name may have any string. Where not, it is not met.
    pub(crate) fn accept_any_string(&mut self, name: &str) -> bool {
        self.meet(name, |check| match check {
            Check::Anything => true,
            _ => check
                .typed(kind::STRING)
                .is_some_and(|typed| typed.values.is_none() && typed.lengths.is_none()),
        })
    }

    #[inline]
    fn meet(&mut self, name: &str, accepts: impl FnOnce(&Check) -> bool) -> bool {
        let position = self.typed.position(name);
        let property = position.and_then(|it| Some((it, self.typed.properties.get(it)?)));
        let Some((position, property)) = property else {
            self.has_others = true;
            return accepts(&self.typed.additional);
        };
        let accepted = accepts(&property.check);
        if accepted {
            let bit = u32::try_from(position).ok();
            self.met |= bit.and_then(|it| 1_u64.checked_shl(it)).unwrap_or(0);
        }
        accepted
    }

    /// Whether all that are required were met.
    pub(crate) fn are_complete(&self) -> bool {
        self.met & self.typed.required == self.typed.required
    }
}
