//! Plain scalars by the [core schema](https://yaml.org/spec/1.2.2/#103-core-schema) of YAML 1.2: `yes` and dates are strings.

use serde_json::{Number, Value};

/// Returns the value of a plain scalar.
///
/// # Errors
/// If JSON has no such number.
pub(super) fn plain(text: &str) -> Result<Value, String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "true" | "True" | "TRUE" => return Ok(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Value::Bool(false)),
        _ => {}
    }
    if is_no_number(text) {
        return Err(format!("{text} is not a number in JSON; quote the value"));
    }
    let number = based(text).or_else(|| decimal(text));
    match number {
        Some(Ok(number)) => Ok(Value::Number(number)),
        Some(Err(())) => Err(format!("the number {text} is too large; quote the value")),
        None => Ok(Value::String(text.to_owned())),
    }
}

/// Infinity, or not a number.
fn is_no_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN")
}

/// A number in octal or hexadecimal digits.
fn based(text: &str) -> Option<Result<Number, ()>> {
    let (digits, radix) = match text.get(..2)? {
        "0o" => (text.get(2..)?, 8),
        "0x" => (text.get(2..)?, 16),
        _ => return None,
    };
    if digits.is_empty() || !digits.chars().all(|it| it.is_digit(radix)) {
        return None;
    }
    let number = u64::from_str_radix(digits, radix);
    Some(number.map(Number::from).map_err(|_| ()))
}

/// A number in decimal digits. One beyond 64 bits is read as a floating-point number, as most languages do.
fn decimal(text: &str) -> Option<Result<Number, ()>> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_digits = |text: &str| text.bytes().all(|it| it.is_ascii_digit());
    if !unsigned.is_empty() && is_digits(unsigned) {
        let plain = text.strip_prefix('+').unwrap_or(text);
        if let Ok(number) = plain.parse::<u64>() {
            return Some(Ok(number.into()));
        }
        if let Ok(number) = plain.parse::<i64>() {
            return Some(Ok(number.into()));
        }
    }
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let exponent = exponent.map(|it| it.strip_prefix(['-', '+']).unwrap_or(it));
    if exponent.is_some_and(|it| it.is_empty() || !is_digits(it)) {
        return None;
    }
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let has_point = mantissa.contains('.');
    if !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    // `1.` is a number, and `.` and `.e1` are not.
    if whole.is_empty() && (!has_point || fraction.is_empty()) {
        return None;
    }
    let number = text.parse::<f64>().ok()?;
    Some(Number::from_f64(number).ok_or(()))
}
