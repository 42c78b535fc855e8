//! Formats of strings: their names in words, an example of each, and a check of the text.
//!
//! `format` is not validated. The check only finds the string that a type has refused, so that the message can name it.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use oxmcp_json::{Text, pointer_token};
use serde_json::{Map, Value};

use crate::{
    explain::expected::quote_text,
    infer::{order::FORMAT, references::target},
};

/// The maximum number of strings that are checked.
const MAX_CHECKED: usize = 256;
/// The maximum depth up to which values are searched.
const MAX_DEPTH: usize = 32;

/// The name of a format with its article, and its form.
fn words(format: &str) -> Option<(&'static str, &'static str)> {
    Some(match format {
        "date" => ("a date", "YYYY-MM-DD"),
        "time" => ("a time", "HH:MM:SS with an offset, such as 09:30:00Z"),
        "partial-time" => ("a time", "HH:MM:SS"),
        "date-time" => (
            "a date and time",
            "YYYY-MM-DDTHH:MM:SS with an offset, such as 2026-01-31T09:30:00Z",
        ),
        "partial-date-time" => ("a date and time", "YYYY-MM-DDTHH:MM:SS without an offset"),
        "zoned-date-time" => (
            "a date and time in a time zone",
            "a value such as 2026-01-31T09:30:00+01:00[Europe/Berlin]",
        ),
        "duration" => ("a duration", "ISO 8601, such as PT1H30M"),
        "uuid" => (
            "a UUID",
            "a value such as 67e55044-10b1-426f-9247-bb680e5fe0c8",
        ),
        "uri" | "url" => ("a URI", "a value such as https://example.com/page"),
        "uri-reference" => ("a URI or a relative reference", "a value such as /page?x=1"),
        "iri" => ("an IRI", "a value such as https://example.com/page"),
        "iri-reference" => (
            "an IRI or a relative reference",
            "a value such as /page?x=1",
        ),
        "uri-template" => (
            "a URI template",
            "a value such as https://example.com/{page}",
        ),
        "ipv4" => ("an IPv4 address", "a value such as 192.0.2.1"),
        "ipv6" => ("an IPv6 address", "a value such as 2001:db8::1"),
        "ip" => ("an IP address", "a value such as 192.0.2.1 or 2001:db8::1"),
        "email" | "idn-email" => ("an email address", "a value such as ann@example.com"),
        "hostname" | "idn-hostname" => ("a host name", "a value such as www.example.com"),
        "regex" => ("a regular expression", "the syntax of ECMAScript"),
        "json-pointer" => ("a JSON Pointer", "a value such as /a/0"),
        "relative-json-pointer" => ("a relative JSON Pointer", "a value such as 1/a"),
        "decimal" => ("a decimal number", "digits, such as 12.50"),
        _ => return None,
    })
}

/// Whether a text can have a format. It can still have values that no type accepts.
fn fits(format: &str, text: &str) -> bool {
    match format {
        "date" => is_date(text),
        "time" => split_offset(text).is_some_and(is_time),
        "partial-time" => is_time(text),
        "date-time" => is_date_time(text, |time| split_offset(time).is_some_and(is_time)),
        "partial-date-time" => is_date_time(text, is_time),
        "zoned-date-time" => text.ends_with(']') && text.contains('['),
        "duration" => {
            let text = text.trim_start_matches(['+', '-']);
            let rest = text.strip_prefix(['P', 'p']);
            rest.is_some_and(|rest| rest.bytes().any(|it| it.is_ascii_digit()))
        }
        "uuid" => {
            let plain = text.trim_start_matches("urn:uuid:");
            let plain = plain.trim_start_matches('{').trim_end_matches('}');
            let digits = plain.bytes().filter(|it| *it != b'-');
            digits.clone().count() == 32 && digits.into_iter().all(|it| it.is_ascii_hexdigit())
        }
        "uri" | "url" | "iri" => text.split_once(':').is_some_and(|(scheme, rest)| {
            let is_allowed = |it: u8| it.is_ascii_alphanumeric() || b"+-.".contains(&it);
            scheme.starts_with(|it: char| it.is_ascii_alphabetic())
                && scheme.bytes().all(is_allowed)
                && !rest.is_empty()
        }),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "ip" => text.parse::<IpAddr>().is_ok(),
        "email" | "idn-email" => text.split_once('@').is_some_and(|(user, host)| {
            !user.is_empty() && !host.is_empty() && !text.contains(char::is_whitespace)
        }),
        "hostname" | "idn-hostname" => {
            !text.is_empty() && !text.contains(|it: char| it.is_whitespace() || "/:@".contains(it))
        }
        "decimal" => text.parse::<f64>().is_ok(),
        _ => true,
    }
}

fn is_date_time(text: &str, is_time: impl Fn(&str) -> bool) -> bool {
    let parts = text.split_once(['T', 't', ' ']);
    parts.is_some_and(|(date, time)| is_date(date) && is_time(time))
}

fn is_date(text: &str) -> bool {
    let mut parts = text.trim_start_matches(['+', '-']).splitn(3, '-');
    let mut next = |least: usize| {
        let part = parts.next().filter(|it| it.len() >= least)?;
        let is_number = part.bytes().all(|it| it.is_ascii_digit());
        is_number.then(|| part.parse::<u32>().ok()).flatten()
    };
    let (Some(year), Some(month), Some(day)) = (next(4), next(2), next(2)) else {
        return false;
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

fn is_time(text: &str) -> bool {
    let (time, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let mut parts = time.split(':').map(|part| {
        let is_number = part.len() == 2 && part.bytes().all(|it| it.is_ascii_digit());
        is_number.then(|| part.parse::<u32>().ok()).flatten()
    });
    let (hour, minute, second) = (parts.next().flatten(), parts.next().flatten(), parts.next());
    let second = second.unwrap_or(Some(0));
    hour.is_some_and(|it| it < 24)
        && minute.is_some_and(|it| it < 60)
        && second.is_some_and(|it| it <= 60)
        && parts.next().is_none()
        && !fraction.is_empty()
        && fraction.bytes().all(|it| it.is_ascii_digit())
}

/// The time before an offset.
fn split_offset(text: &str) -> Option<&str> {
    if let Some(time) = text.strip_suffix(['Z', 'z']) {
        return Some(time);
    }
    let at = text.rfind(['+', '-'])?;
    let (time, offset) = text.split_at_checked(at)?;
    let digits = offset.bytes().skip(1).filter(u8::is_ascii_digit).count();
    matches!(digits, 2 | 4).then_some(time)
}

/// The messages about strings in a value that do not have the format that the schema gives them, with their JSON Pointers.
/// If none is found but `place` has only one string with a format, it is that string.
pub(crate) fn misformatted(
    schema: &Value,
    value: Text<'_>,
    place: Option<&str>,
) -> Vec<(String, String)> {
    let mut search = Search {
        root: schema,
        strings: Vec::new(),
    };
    search.visit(schema, value, String::new(), 0);
    let strings = &search.strings;
    let wrong: Vec<_> = strings
        .iter()
        .filter(|it| !fits(&it.format, &it.text))
        .collect();
    let is_there = |it: &&Formatted| {
        let rest = place.and_then(|place| it.pointer.strip_prefix(place));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let there: Vec<_> = strings.iter().filter(is_there).collect();
    let found = match (wrong.as_slice(), there.as_slice()) {
        ([], [only]) => vec![*only],
        _ => wrong,
    };
    let message = |it: &Formatted| {
        let (name, form) = words(&it.format)?;
        let text = quote_text(&it.text);
        Some((
            it.pointer.clone(),
            format!("{text} is not {name}; expected {form}"),
        ))
    };
    found.into_iter().filter_map(message).collect()
}

/// A string in a value, and the format that the schema gives it.
struct Formatted {
    pointer: String,
    text: String,
    format: String,
}

struct Search<'a> {
    root: &'a Value,
    strings: Vec<Formatted>,
}

impl<'a> Search<'a> {
    fn visit(&mut self, schema: &'a Value, value: Text<'_>, pointer: String, depth: usize) {
        let Value::Object(map) = schema else { return };
        if depth == MAX_DEPTH || self.strings.len() == MAX_CHECKED {
            return;
        }
        if let Some(target) = map.get("$ref").and_then(|it| target(it, self.root)) {
            self.visit(target, value, pointer.clone(), depth + 1);
        }
        for keyword in ["anyOf", "oneOf", "allOf"] {
            let forms = map.get(keyword).and_then(Value::as_array);
            for form in forms.into_iter().flatten() {
                self.visit(form, value, pointer.clone(), depth + 1);
            }
        }
        if let Some(text) = value.as_str() {
            let format = map.get("format").or_else(|| map.get(FORMAT));
            if let Some(format) = format.and_then(Value::as_str) {
                let (text, format) = (text.into_owned(), format.to_owned());
                self.strings.push(Formatted {
                    pointer,
                    text,
                    format,
                });
            }
        } else if value.is_object() {
            self.members(map, value, &pointer, depth);
        } else {
            self.items(map, value, &pointer, depth);
        }
    }

    fn members(&mut self, map: &'a Map<String, Value>, object: Text<'_>, at: &str, depth: usize) {
        let properties = map.get("properties");
        let additional = map.get("additionalProperties");
        for (name, value) in object.members() {
            let Some(name) = name.as_str() else { continue };
            let property = properties.and_then(|it| it.get(&*name)).or(additional);
            if let Some(property) = property {
                let pointer = format!("{at}/{}", pointer_token(&name));
                self.visit(property, value, pointer, depth + 1);
            }
        }
    }

    fn items(&mut self, map: &'a Map<String, Value>, array: Text<'_>, at: &str, depth: usize) {
        let first = map.get("prefixItems").and_then(Value::as_array);
        for (index, value) in array.items().enumerate() {
            let item = first
                .and_then(|it| it.get(index))
                .or_else(|| map.get("items"));
            if let Some(item) = item {
                self.visit(item, value, format!("{at}/{index}"), depth + 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_checked_against_their_formats() {
        let table = [
            ("date", "2024-02-29", true),
            ("date", "2025-02-29", false),
            ("date", "tomorrow", false),
            ("date", "", false),
            ("time", "09:30:00Z", true),
            ("time", "09:30:00.5+02:00", true),
            ("time", "09:30", false),
            ("partial-time", "09:30:00", true),
            ("partial-time", "24:00:00", false),
            ("date-time", "2026-01-31T09:30:00Z", true),
            ("date-time", "2026-01-31T09:30:00", false),
            ("date-time", "2026-01-31", false),
            ("partial-date-time", "2026-01-31T09:30:00", true),
            ("partial-date-time", "soon", false),
            ("duration", "PT1H", true),
            ("duration", "1 hour", false),
            ("uuid", "67e55044-10b1-426f-9247-bb680e5fe0c8", true),
            ("uuid", "67e55044", false),
            ("uri", "https://a.example/", true),
            ("uri", "a.example/", false),
            ("ipv4", "127.0.0.1", true),
            ("ipv6", "127.0.0.1", false),
            ("ip", "localhost", false),
            ("email", "ann", false),
            ("hostname", "a b", false),
            ("unknown", "anything", true),
        ];
        for (format, text, expected) in table {
            assert_eq!(fits(format, text), expected, "{format}: {text}");
        }
    }
}
