//! Repairs of texts: lone surrogates and base64.

use std::borrow::Cow;

/// Replaces each escaped surrogate without a partner by U+FFFD, in JSON text. Borrowed if there is none.
#[must_use]
pub fn without_lone_surrogates(text: &str) -> Cow<'_, str> {
    let mut mended = String::new();
    let mut copied = 0;
    let mut at = 0;
    let unit = |at: usize| -> Option<u16> {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        u16::from_str_radix(digits, 16).ok().filter(|_| is_hex)
    };
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('\\')) {
        at += found;
        match unit(at) {
            Some(0xD800..=0xDBFF) if matches!(unit(at + 6), Some(0xDC00..=0xDFFF)) => at += 12,
            Some(0xD800..=0xDFFF) => {
                mended.push_str(text.get(copied..at).unwrap_or_default());
                mended.push_str("\\ufffd");
                at += 6;
                copied = at;
            }
            // The escape and the character after it, which is ASCII in valid JSON.
            _ => at += 2,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    mended.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(mended)
}

/// Base64 in the standard alphabet and with padding, from what peers write.
pub(crate) fn standard_base64(text: &str) -> String {
    let data = match text.split_once(";base64,") {
        Some((prefix, data)) if prefix.trim_start().starts_with("data:") => data,
        _ => text,
    };
    let mut standard: String = data
        .chars()
        .filter(|c| !c.is_ascii_whitespace() && *c != '=')
        .map(|c| match c {
            '-' => '+',
            '_' => '/',
            other => other,
        })
        .collect();
    while !standard.len().is_multiple_of(4) {
        standard.push('=');
    }
    standard
}
