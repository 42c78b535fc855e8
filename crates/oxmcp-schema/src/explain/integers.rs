//! Differences between integers of schemas and of types: `3.0` is an integer for a schema but not for a `u32`, which
//! also has a maximum.

use oxmcp_json::Text;

/// The number of digits of the largest integer that types commonly accept, `u64::MAX`.
const DIGITS: usize = 20;

/// Returns the text with `3` instead of `3.0` and `30` instead of `3e1`, for types that read only integers without fraction
/// and exponent. `None` if it has no such number.
#[must_use]
pub fn without_fractions(json: Text<'_>) -> Option<String> {
    let text = json.get();
    let mut output = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(&byte) = text.as_bytes().get(at) {
        let start = at;
        match byte {
            b'"' => at = end_of_string(text, at),
            b'-' | b'0'..=b'9' => {
                at = end_of_number(text, at);
                if let Some(integer) = text.get(start..at).and_then(whole_number) {
                    output.push_str(text.get(copied..start)?);
                    output.push_str(&integer);
                    copied = at;
                }
            }
            _ => at += 1,
        }
    }
    if copied == 0 {
        return None;
    }
    output.push_str(text.get(copied..)?);
    Some(output)
}

fn end_of_string(text: &str, start: usize) -> usize {
    let mut is_escaped = false;
    let inside = text.bytes().enumerate().skip(start + 1);
    for (at, byte) in inside {
        match byte {
            b'"' if !is_escaped => return at + 1,
            b'\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    text.len()
}

fn end_of_number(text: &str, start: usize) -> usize {
    let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
    let rest = text.as_bytes().iter().skip(start);
    start + rest.take_while(|byte| is_part(byte)).count()
}

/// The number without fraction and exponent, if it has one of them and is an integer of moderate size.
pub(crate) fn whole_number(number: &str) -> Option<String> {
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (number, 0),
    };
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => ("-", mantissa),
        None => ("", mantissa),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some(parts) => parts,
        None if mantissa.len() == number.len() - sign.len() => return None,
        None => (mantissa, ""),
    };
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_end_matches('0');
    let significant = significant.trim_start_matches('0');
    if significant.is_empty() {
        return Some("0".to_owned());
    }
    let zeros = digits.len() - digits.trim_end_matches('0').len();
    let behind = i64::try_from(fraction.len()).ok()? - i64::try_from(zeros).ok()?;
    let missing = usize::try_from(i64::from(exponent) - behind).ok()?;
    let is_moderate = significant.len().checked_add(missing)? <= DIGITS;
    is_moderate.then(|| format!("{sign}{significant}{}", "0".repeat(missing)))
}

/// Rewrites the error of serde_json for a number that an integer type does not accept as the message of a violation.
/// `None` for any other error.
#[must_use]
pub(crate) fn refused_number(error: &str) -> Option<String> {
    let (_, said) = error.split_once("invalid ")?;
    let (found, expected) = said.split_once(", expected ")?;
    let (least, greatest) = range(expected)?;
    let number = found.split('`').nth(1)?;
    Some(format!(
        "expected an integer from {least} to {greatest}, got the number {number}"
    ))
}

fn range(name: &str) -> Option<(i128, i128)> {
    macro_rules! ranges {
        ($($type:ident)*) => {
            match name {
                $(stringify!($type) => Some(($type::MIN.try_into().ok()?, $type::MAX.try_into().ok()?)),)*
                _ => None,
            }
        };
    }
    ranges!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_lose_only_their_fraction() {
        let table = [
            (r#"{"a": 3.0}"#, Some(r#"{"a": 3}"#)),
            ("[1.0,-2.00,3e2,1.5e1,12.50E+1]", Some("[1,-2,300,15,125]")),
            ("[-0.0, 0e99, 100e-2]", Some("[0, 0, 1]")),
            (
                r#"{"1.0": "say \"2.0\" \\", "b": 2.0}"#,
                Some(r#"{"1.0": "say \"2.0\" \\", "b": 2}"#),
            ),
            ("18446744073709551615.0", Some("18446744073709551615")),
            ("[3, 1.5, 1e-1, 15e-2, 1e400, 1e99999999999]", None),
            (r#"{"a": "3.0", "b": true}"#, None),
        ];
        for (json, expected) in table {
            let found = without_fractions(Text::checked(json));
            assert_eq!(found.as_deref(), expected, "{json}");
        }
    }

    #[test]
    fn numbers_out_of_range_are_described_in_words() {
        let said = |json: &str| {
            let error = serde_json::from_str::<u32>(json).unwrap_err();
            let error = error.to_string();
            refused_number(error.rsplit_once(" at line ").unwrap().0).unwrap_or_default()
        };
        for (json, number) in [("5000000000", "5000000000"), ("-1", "-1"), ("1.5", "1.5")] {
            let expected =
                format!("expected an integer from 0 to 4294967295, got the number {number}");
            assert_eq!(said(json), expected);
        }
        assert_eq!(said("\"x\""), "");
        assert_eq!(refused_number("the year is wrong"), None);
    }
}
