//! What can be repeated in a header: a string, an integer, a truth.

use std::borrow::Cow;

use crate::json::Text;

/// The largest integer that every reader of JSON takes for itself.
const MAX_SAFE: i64 = (1 << 53) - 1;

/// An argument, as far as headers go.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Scalar<'a> {
    /// There is none; null is as good as none.
    Absent,
    String(Cow<'a, str>),
    Integer(i64),
    /// `true`, `false`, and numbers that are not integers.
    Word(&'a str),
    /// An integer that some reader would take for another.
    Unsafe,
    /// An object, an array, or what is no text in truth.
    Other,
}

impl<'a> Scalar<'a> {
    pub(super) fn of(value: Text<'a>) -> Self {
        let text = value.get();
        match text.as_bytes().first() {
            Some(b'"') => value.as_str().map_or(Self::Other, Self::String),
            Some(b'{' | b'[') => Self::Other,
            Some(b'n') => Self::Absent,
            Some(b't' | b'f') => Self::Word(text),
            _ => match Decimal::read(text).and_then(Decimal::integer) {
                None => Self::Word(text),
                Some(Integer::Safe(number)) => Self::Integer(number),
                Some(Integer::Unsafe) => Self::Unsafe,
            },
        }
    }
}

/// The integer that is written here, where it is one that every reader takes for itself.
#[cfg(any(feature = "http-server", test))]
pub(super) fn integer(text: &str) -> Option<i64> {
    match Decimal::read(text)?.integer()? {
        Integer::Safe(number) => Some(number),
        Integer::Unsafe => None,
    }
}

/// A number as JSON writes it.
struct Decimal<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    exponent: i32,
}

enum Integer {
    Safe(i64),
    Unsafe,
}

impl<'a> Decimal<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Self::exponent(exponent)?),
            None => (rest, 0),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, digits(fraction)?),
            None => (mantissa, ""),
        };
        let whole = digits(whole)?;
        let padded = whole.len() > 1 && whole.starts_with('0');
        (!padded).then_some(Self {
            negative,
            whole,
            fraction,
            exponent,
        })
    }

    fn exponent(text: &str) -> Option<i32> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        digits(unsigned)?;
        // A number that needs more is nought or far too large, whatever stands before it: both show all the same.
        let size = unsigned.parse().unwrap_or(i32::MAX / 2).min(i32::MAX / 2);
        Some(if text.starts_with('-') { -size } else { size })
    }

    /// The integer that it is. `None` where it is none.
    fn integer(self) -> Option<Integer> {
        let digits = format!("{}{}", self.whole, self.fraction);
        let fraction = i32::try_from(self.fraction.len()).unwrap_or(i32::MAX / 2);
        let significant = digits.trim_end_matches('0');
        let zeros = i32::try_from(digits.len() - significant.len()).unwrap_or(i32::MAX / 2);
        let significant = significant.trim_start_matches('0');
        if significant.is_empty() {
            return Some(Integer::Safe(0));
        }
        let exponent = u32::try_from(self.exponent - fraction + zeros).ok()?;
        let size = significant.parse::<i64>().ok();
        let size = size.and_then(|size| size.checked_mul(10_i64.checked_pow(exponent)?));
        let size = size.filter(|size| *size <= MAX_SAFE);
        let sign = if self.negative { -1 } else { 1 };
        Some(size.map_or(Integer::Unsafe, |size| Integer::Safe(sign * size)))
    }
}

/// The text, where it is made of digits alone.
fn digits(text: &str) -> Option<&str> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then_some(text)
}
