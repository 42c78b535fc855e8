//! Fast check: one pass over JSON text, without building a value.

use oxmcp_json::{Text, Walk};
use serde_json::Value;

use crate::fast::check::{Check, Span, Typed, bit, kind};

/// Whether the check accepts the value. `false` does not mean that the value is invalid: the full validator decides.
pub(crate) fn accepts(check: &Check, instance: Text<'_>) -> bool {
    match check {
        Check::Anything => true,
        Check::Unknown => false,
        _ => Acceptor::new(instance).value(check),
    }
}

/// A walk over a value that compares it with its check.
pub(crate) struct Acceptor<'a> {
    pub(crate) walk: Walk<'a>,
    /// Whether an object has names that the check does not list. Such names are not compared with each other; listed
    /// names are known to occur at most once in an object.
    pub(crate) has_unlisted_names: bool,
    /// Whether `3.0` is accepted for an integer type.
    pub(crate) takes_whole_numbers: bool,
}

impl<'a> Acceptor<'a> {
    pub(crate) fn new(instance: Text<'a>) -> Self {
        Self {
            walk: Walk::new(instance),
            has_unlisted_names: false,
            takes_whole_numbers: false,
        }
    }

    /// Takes the next value, if the check accepts it. Otherwise the walk cannot be continued.
    pub(crate) fn value(&mut self, check: &Check) -> bool {
        match (self.walk.peek(), check) {
            (None, _) | (_, Check::Unknown) => false,
            (Some(first), Check::Anything) => {
                self.has_unlisted_names |= matches!(first, b'{' | b'[');
                self.walk.value().is_some()
            }
            (Some(first), _) => self.typed(first, check),
        }
    }

    fn typed(&mut self, first: u8, check: &Check) -> bool {
        match first {
            b'{' => check
                .typed(kind::OBJECT)
                .is_some_and(|typed| self.object(typed)),
            b'[' => check
                .typed(kind::ARRAY)
                .is_some_and(|typed| self.array(typed)),
            b'"' => check
                .typed(kind::STRING)
                .is_some_and(|typed| self.string(typed)),
            b'n' => accepts_null(check) && self.walk.value().is_some(),
            b't' | b'f' => accepts_boolean(check, first == b't') && self.walk.value().is_some(),
            _ => match self.walk.integer() {
                Some(integer) => accepts_integer(check, integer),
                None => {
                    let number = self.walk.value();
                    number.is_some_and(|number| accepts_number(check, number.get()))
                }
            },
        }
    }

    fn string(&mut self, typed: &Typed) -> bool {
        if typed.takes_any_string() {
            return self.walk.value().is_some();
        }
        let string = self.walk.string();
        string.is_some_and(|string| typed.accepts_string(&string))
    }

    fn array(&mut self, typed: &Typed) -> bool {
        if typed.values.is_some() {
            return false;
        }
        self.walk.enter();
        let mut count = 0_usize;
        while self.walk.peek().is_some() {
            if !self.value(&typed.items) {
                return false;
            }
            count += 1;
        }
        self.walk.close();
        typed.accepts_count(count)
    }

    fn object(&mut self, typed: &Typed) -> bool {
        if typed.values.is_some() {
            return false;
        }
        self.walk.enter();
        let mut properties = Properties::of(typed);
        while let Some(key) = self.walk.value() {
            let name = key.as_str();
            let check = name.and_then(|name| properties.meet(&name));
            if !check.is_some_and(|check| self.value(check)) {
                return false;
            }
        }
        self.walk.close();
        self.has_unlisted_names |= properties.has_others;
        properties.are_complete()
    }
}

impl Typed {
    /// Whether the value is one of the listed values, or none are listed.
    fn lists(&self, is_value: impl Fn(&Value) -> bool) -> bool {
        let values = self.values.as_ref();
        values.is_none_or(|values| values.iter().any(is_value))
    }

    fn fits_limits(&self, number: f64) -> bool {
        let numbers = self.numbers.as_ref();
        numbers.is_none_or(|numbers| numbers.accepts(number))
    }

    fn takes_any_string(&self) -> bool {
        self.values.is_none() && self.lengths.is_none()
    }

    #[inline]
    fn accepts_string(&self, string: &str) -> bool {
        let is_long_enough = |lengths: &Span| lengths.accepts(string.chars().count());
        self.takes_any_string()
            || self.lists(|listed| listed.as_str() == Some(string))
                && self.lengths.as_ref().is_none_or(is_long_enough)
    }

    pub(crate) fn accepts_count(&self, count: usize) -> bool {
        let span = self.item_count.as_ref();
        span.is_none_or(|span| span.accepts(count))
    }
}

pub(crate) fn accepts_null(check: &Check) -> bool {
    let typed = check.typed(kind::NULL);
    typed.is_some_and(|typed| typed.lists(Value::is_null))
}

pub(crate) fn accepts_boolean(check: &Check, value: bool) -> bool {
    let typed = check.typed(kind::BOOLEAN);
    typed.is_some_and(|typed| typed.lists(|listed| *listed == Value::Bool(value)))
}

#[inline]
pub(crate) fn accepts_string(check: &Check, string: &str) -> bool {
    let typed = check.typed(kind::STRING);
    typed.is_some_and(|typed| typed.accepts_string(string))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "limits are not compared with integers that are not exact"
)]
#[inline]
pub(crate) fn accepts_integer(check: &Check, integer: i64) -> bool {
    check.typed(kind::INTEGER).is_some_and(|typed| {
        typed.lists(|listed| listed.as_i64() == Some(integer)) && typed.fits_limits(integer as f64)
    })
}

/// Whether a number is accepted that is not written as an integer.
pub(crate) fn accepts_fraction(check: &Check, fraction: f64) -> bool {
    let typed = check.typed(kind::FRACTION);
    typed.is_some_and(|typed| {
        typed.values.is_none() && fraction.is_finite() && typed.fits_limits(fraction)
    })
}

fn accepts_number(check: &Check, text: &str) -> bool {
    if let Ok(value) = text.parse() {
        // serde_json reads `-0` as a float, which readers of the value may rely on.
        return text != "-0" && accepts_integer(check, value);
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Larger than any `i64`: rare enough for the full validator.
        return false;
    }
    text.parse()
        .is_ok_and(|fraction| accepts_fraction(check, fraction))
}

/// The properties of an object that were read so far.
pub(crate) struct Properties<'c> {
    typed: &'c Typed,
    /// The bits of these properties.
    met: u64,
    /// The position of the property that probably comes next: most objects list their properties in the order of the
    /// schema.
    next: usize,
    /// Whether there were names that are not listed, or of properties that have no bit.
    pub(crate) has_others: bool,
}

impl<'c> Properties<'c> {
    pub(crate) fn of(typed: &'c Typed) -> Self {
        Self {
            typed,
            met: 0,
            next: 0,
            has_others: false,
        }
    }

    /// The check for the value of the member `name`. `None` if the name is known to occur for the second time: then it
    /// is undefined which value counts.
    #[inline]
    pub(crate) fn meet(&mut self, name: &str) -> Option<&'c Check> {
        let Some((position, property)) = self.typed.find(name, self.next) else {
            self.has_others = true;
            return Some(&self.typed.additional);
        };
        self.next = position + 1;
        let Some(bit) = bit(position) else {
            self.has_others = true;
            return Some(&property.check);
        };
        let is_new = self.met & bit == 0;
        self.met |= bit;
        is_new.then_some(&property.check)
    }

    /// Whether all required properties were read.
    pub(crate) fn are_complete(&self) -> bool {
        self.met & self.typed.required == self.typed.required
    }
}
