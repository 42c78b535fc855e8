//! Descriptions of the fields of a form in words, and validation of text formats.
//!
//! See [requested schema](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#requested-schema).

use std::fmt::Write as _;

use serde_json::Value;

use crate::types::elicitation::{
    schema::{NumberKind, PrimitiveSchema, StringFormat, StringSchema},
    select::EnumOptions,
};

/// The maximum number of entries in an error message: the first few show the kind of mistake.
pub(crate) const SHOWN: usize = 10;

/// The values that the content of an answer can hold.
pub(crate) const PRIMITIVE: &str = "a string, a number, true or false, or an array of strings";

/// Describes the values that a field accepts, for people and models.
pub(crate) fn expected(field: &PrimitiveSchema) -> String {
    match field {
        PrimitiveSchema::String(field) => expected_text(field),
        PrimitiveSchema::Number(field) => {
            let kind = match field.kind {
                NumberKind::Number => "a number",
                NumberKind::Integer => "an integer",
            };
            format!("{kind}{}", bounds(field.minimum, field.maximum, ""))
        }
        PrimitiveSchema::Boolean(_) => "true or false".into(),
        PrimitiveSchema::SingleSelect(field) => format!("one of {}", listed(&field.options)),
        PrimitiveSchema::MultiSelect(field) => {
            let count = bounds(field.min_items, field.max_items, " entries");
            format!("an array{count}, each one of {}", listed(&field.options))
        }
        PrimitiveSchema::Unknown(_) => PRIMITIVE.into(),
    }
}

fn expected_text(field: &StringSchema) -> String {
    let kind = field.format.as_ref().and_then(|format| format.expected());
    let length = bounds(field.min_length, field.max_length, " characters");
    match kind {
        Some(kind) if length.is_empty() => kind.into(),
        Some(kind) => format!("{kind},{length}"),
        None => format!("a string{length}"),
    }
}

fn bounds<T: ToString>(least: Option<T>, most: Option<T>, unit: &str) -> String {
    match (
        least.map(|it| it.to_string()),
        most.map(|it| it.to_string()),
    ) {
        (Some(least), Some(most)) if least == most => format!(" of exactly {least}{unit}"),
        (Some(least), Some(most)) if unit.is_empty() => format!(" from {least} to {most}"),
        (Some(least), Some(most)) => format!(" of {least} to {most}{unit}"),
        (Some(least), None) => format!(" of at least {least}{unit}"),
        (None, Some(most)) => format!(" of at most {most}{unit}"),
        (None, None) => String::new(),
    }
}

fn listed(options: &EnumOptions) -> String {
    let mut text = String::new();
    for (index, option) in options.values().take(SHOWN + 1).enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        // Writing to a string cannot fail.
        let _ = match index {
            SHOWN => write!(text, "{separator}…"),
            _ => write!(text, "{separator}{}", quoted(option)),
        };
    }
    text
}

pub(crate) fn got(value: &Value) -> String {
    match value {
        Value::String(text) => format!("the string {}", quoted(text)),
        Value::Number(number) => format!("the number {number}"),
        Value::Bool(value) => value.to_string(),
        Value::Array(_) => format!("the array {}", cut(&value.to_string())),
        Value::Null => "null".into(),
        Value::Object(_) => "an object".into(),
    }
}

fn quoted(text: &str) -> String {
    cut(&format!("{text:?}"))
}

/// Shortens a text of a peer, which can be of any length.
fn cut(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        None => text.into(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

impl StringFormat {
    /// Whether a text has the format. A text of an unknown format passes.
    pub(crate) fn fits(&self, text: &str) -> bool {
        match self {
            Self::Email => is_email(text),
            Self::Uri => is_uri(text),
            Self::Date => is_date(text.as_bytes()),
            Self::DateTime => is_date_time(text.as_bytes()),
            Self::Unknown(_) => true,
        }
    }

    /// Describes the expected text, for people. `None` if the format is unknown.
    pub(crate) fn expected(&self) -> Option<&'static str> {
        match self {
            Self::Email => Some("an email address, such as name@example.com"),
            Self::Uri => Some("a URI, such as https://example.com/"),
            Self::Date => Some("a date, such as 2026-07-28"),
            Self::DateTime => Some("a date and time, such as 2026-07-28T12:00:00Z"),
            Self::Unknown(_) => None,
        }
    }
}

/// Whether a text is an email address of [RFC 5321](https://www.rfc-editor.org/rfc/rfc5321#section-4.1.2), with letters of all
/// languages as in RFC 6531.
fn is_email(text: &str) -> bool {
    text.rsplit_once('@')
        .is_some_and(|(local, domain)| is_mailbox(local) && is_domain(domain))
}

fn is_mailbox(local: &str) -> bool {
    let quoted = local
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    if let Some(quoted) = quoted {
        return !quoted.chars().any(char::is_control);
    }
    let is_atom = |c: char| {
        !c.is_ascii() && !c.is_whitespace() && !c.is_control()
            || c.is_ascii_alphanumeric()
            || "!#$%&'*+-/=?^_`{|}~".contains(c)
    };
    local
        .split('.')
        .all(|atom| !atom.is_empty() && atom.chars().all(is_atom))
}

fn is_domain(domain: &str) -> bool {
    let literal = domain
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    if let Some(literal) = literal {
        let is_address = |c: char| c.is_ascii_alphanumeric() || ".:-".contains(c);
        return !literal.is_empty() && literal.chars().all(is_address);
    }
    domain.split('.').all(|label| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_alphanumeric() || c == '-')
    })
}

/// Whether a text is a URI of [RFC 3986](https://www.rfc-editor.org/rfc/rfc3986): a scheme, and characters that are allowed in a
/// URI.
fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    let may_stand = |c: char| c.is_ascii_graphic() && !"\"<>\\^`{|}".contains(c);
    let is_escaped = |after: &str| {
        let mut digits = after.bytes();
        [digits.next(), digits.next()]
            .iter()
            .all(|digit| digit.is_some_and(|digit| digit.is_ascii_hexdigit()))
    };
    is_scheme && rest.chars().all(may_stand) && rest.split('%').skip(1).all(is_escaped)
}

/// Whether a text is a `full-date` of [RFC 3339](https://www.rfc-editor.org/rfc/rfc3339#section-5.6).
fn is_date(text: &[u8]) -> bool {
    let [y0, y1, y2, y3, b'-', m0, m1, b'-', d0, d1] = text else {
        return false;
    };
    let (Some(century), Some(rest)) = (two(*y0, *y1), two(*y2, *y3)) else {
        return false;
    };
    let (Some(month), Some(day)) = (two(*m0, *m1), two(*d0, *d1)) else {
        return false;
    };
    (1..=days(u16::from(century) * 100 + u16::from(rest), month)).contains(&day)
}

/// The number of days of a month, or 0 if there is no such month.
fn days(year: u16, month: u8) -> u8 {
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        _ => 0,
    }
}

/// Whether a text is a `date-time` of RFC 3339.
fn is_date_time(text: &[u8]) -> bool {
    let Some((date, [b'T' | b't', time @ ..])) = text.split_at_checked(10) else {
        return false;
    };
    let [h0, h1, b':', m0, m1, b':', s0, s1, rest @ ..] = time else {
        return false;
    };
    // A minute can have a leap second.
    is_date(date)
        && is_at_most(*h0, *h1, 23)
        && is_at_most(*m0, *m1, 59)
        && is_at_most(*s0, *s1, 60)
        && is_offset(without_fraction(rest))
}

fn without_fraction(rest: &[u8]) -> &[u8] {
    let Some((b'.', fraction)) = rest.split_first() else {
        return rest;
    };
    let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit());
    match digits.count() {
        0 => rest,
        digits => fraction.get(digits..).unwrap_or_default(),
    }
}

fn is_offset(text: &[u8]) -> bool {
    match text {
        [b'Z' | b'z'] => true,
        [b'+' | b'-', h0, h1, b':', m0, m1] => is_at_most(*h0, *h1, 23) && is_at_most(*m0, *m1, 59),
        _ => false,
    }
}

fn is_at_most(tens: u8, ones: u8, limit: u8) -> bool {
    two(tens, ones).is_some_and(|number| number <= limit)
}

/// The value of two decimal digits.
fn two(tens: u8, ones: u8) -> Option<u8> {
    let digit = |byte: u8| byte.is_ascii_digit().then(|| byte - b'0');
    Some(digit(tens)? * 10 + digit(ones)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(format: &StringFormat, fits: bool, texts: &[&str]) {
        for text in texts {
            assert_eq!(format.fits(text), fits, "{}: {text}", format.as_str());
        }
    }

    #[test]
    fn formats_accept_valid_and_reject_invalid_text() {
        use StringFormat::{Date, DateTime, Email, Uri};
        #[rustfmt::skip]
        let good: [(StringFormat, &[&str]); 4] = [
            (Email, &["a@b", "a.b+c@x-y.example", "\"a b\"@c.de", "ü@müller.example", "a@[127.0.0.1]"]),
            (Uri, &["https://example.com/a?b=c#d", "urn:isbn:1", "file:///a%20b", "mailto:a@b", "x:"]),
            (Date, &["2026-07-28", "2024-02-29", "2000-02-29", "0000-12-31"]),
            (DateTime, &["2026-07-28T12:00:00Z", "2026-07-28t23:59:60.123z", "2026-07-28T00:00:00+05:30"]),
        ];
        #[rustfmt::skip]
        let bad: [(StringFormat, &[&str]); 4] = [
            (Email, &["", "a", "@b", "a@", "a b@c", "a@b..c", ".a@b", "a@-b", "a@b\n", "a@[]"]),
            (Uri, &["", "example.com", "1a:b", ":b", "https://a b", "x:%2", "x:%zz", "x:{y}", "https://ü"]),
            (Date, &["", "2026-7-28", "2026-02-29", "1900-02-29", "2026-13-01", "2026-04-31", "2026-07-00", "2026-07-28Z"]),
            (DateTime, &["2026-07-28", "2026-07-28T12:00:00", "2026-07-28 12:00:00Z", "2026-07-28T24:00:00Z",
                "2026-07-28T12:60:00Z", "2026-07-28T12:00:61Z", "2026-07-28T12:00:00.Z", "2026-07-28T12:00:00+0530", "2026-07-2\u{e9}T12:00:00Z"]),
        ];
        for (format, texts) in good {
            all(&format, true, texts);
        }
        for (format, texts) in bad {
            all(&format, false, texts);
        }
        all(&"telephone".into(), true, &["anything"]);
    }
}
