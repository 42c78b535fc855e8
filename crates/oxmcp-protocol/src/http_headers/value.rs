//! Header values: encoding of any text as a header value, decoding, and the scalars that headers can mirror.
//!
//! See [value encoding](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#value-encoding).

use std::{borrow::Cow, fmt};

use base64::{Engine, prelude::BASE64_STANDARD};
use oxmcp_json::Text;

use crate::{
    http_headers::names::{CLOSE, OPEN},
    values::json::EXACT,
};

/// Encodes a text as a header value: unchanged if it survives transport as plain text, otherwise as base64.
#[must_use]
pub fn encode(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{OPEN}{}{CLOSE}", BASE64_STANDARD.encode(text)))
}

/// Whether a text arrives unchanged: it consists of visible ASCII and spaces, has no spaces at its ends, which
/// recipients trim, and does not look encoded.
fn is_plain(text: &str) -> bool {
    let is_visible = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let is_cut_off = text.starts_with(' ') || text.ends_with(' ');
    let looks_encoded = text.starts_with(OPEN) && text.ends_with(CLOSE);
    is_visible && !is_cut_off && !looks_encoded
}

/// Decodes a header value. Spaces and tabs around it are not part of it.
///
/// # Errors
/// If the value contains bytes that are not allowed in headers, or its encoding is invalid.
pub fn decode(value: &[u8]) -> Result<Cow<'_, str>, HeaderValueError> {
    let legal = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~');
    if !value.iter().all(legal) {
        return Err(HeaderValueError::Characters);
    }
    let text = str::from_utf8(value).map_err(|_| HeaderValueError::Characters)?;
    let text = text.trim_matches([' ', '\t']);
    let encoded = text
        .strip_prefix(OPEN)
        .and_then(|rest| rest.strip_suffix(CLOSE));
    let Some(encoded) = encoded else {
        return Ok(Cow::Borrowed(text));
    };
    let bytes = BASE64_STANDARD.decode(encoded);
    let bytes = bytes.map_err(|_| HeaderValueError::Base64)?;
    let text = String::from_utf8(bytes).map_err(|_| HeaderValueError::Utf8)?;
    Ok(Cow::Owned(text))
}

/// The reason why a header value cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the standard that it follows is final"
)]
pub enum HeaderValueError {
    /// A byte that is not allowed in header values.
    Characters,
    /// Invalid base64.
    Base64,
    /// Base64 of bytes that are not UTF-8.
    Utf8,
}

impl fmt::Display for HeaderValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Characters => "it is not visible ASCII; encode it as =?base64?…?=",
            Self::Base64 => "the part between =?base64? and ?= is not padded Base64",
            Self::Utf8 => "the part between =?base64? and ?= does not decode to UTF-8",
        })
    }
}

/// The largest integer that every JSON reader represents exactly.
const MAX_SAFE: i64 = EXACT - 1;

/// An argument, as a header can mirror it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Scalar<'a> {
    /// The argument is absent or null.
    Absent,
    String(Cow<'a, str>),
    Integer(i64),
    /// `true`, `false`, and numbers that are not integers.
    Word(&'a str),
    /// An integer that some JSON readers would round.
    Unsafe,
    /// An object, an array, or a string that is not valid Unicode.
    Other,
}

impl<'a> Scalar<'a> {
    pub(crate) fn of(value: Text<'a>) -> Self {
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

/// Parses an integer that every JSON reader represents exactly.
pub(crate) fn integer(text: &str) -> Option<i64> {
    match Decimal::read(text)?.integer()? {
        Integer::Safe(number) => Some(number),
        Integer::Unsafe => None,
    }
}

/// A number in the syntax of JSON.
struct Decimal<'a> {
    negative: bool,
    integer: &'a str,
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
        let (integer, fraction) = match mantissa.split_once('.') {
            Some((integer, fraction)) => (integer, digits(fraction)?),
            None => (mantissa, ""),
        };
        let integer = digits(integer)?;
        let padded = integer.len() > 1 && integer.starts_with('0');
        (!padded).then_some(Self {
            negative,
            integer,
            fraction,
            exponent,
        })
    }

    fn exponent(text: &str) -> Option<i32> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        digits(unsigned)?;
        // A number with a larger exponent is zero or far too large, whatever its digits are; the capped exponent shows
        // that as well.
        let size = unsigned.parse().unwrap_or(i32::MAX / 2).min(i32::MAX / 2);
        Some(if text.starts_with('-') { -size } else { size })
    }

    /// The integer value of the number. `None` if it is not an integer.
    fn integer(self) -> Option<Integer> {
        let digits = format!("{}{}", self.integer, self.fraction);
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

/// Returns the text if it consists only of digits.
fn digits(text: &str) -> Option<&str> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then_some(text)
}
