//! The parts of [RFC 3986](https://www.rfc-editor.org/rfc/rfc3986) that the crate needs: the characters of URIs, and
//! the percent encoding of all others.

use std::{borrow::Cow, fmt::Write};

/// Returns whether a byte is unreserved: it has no special meaning in a URI.
#[must_use]
pub const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Returns whether a byte is reserved: it can be a delimiter in a URI.
#[must_use]
pub const fn is_reserved(byte: u8) -> bool {
    matches!(
        byte,
        b':' | b'/'
            | b'?'
            | b'#'
            | b'['
            | b']'
            | b'@'
            | b'!'
            | b'$'
            | b'&'
            | b'\''
            | b'('
            | b')'
            | b'*'
            | b'+'
            | b','
            | b';'
            | b'='
    )
}

/// Checks that a text is an absolute URI.
///
/// # Errors
/// A description of the error, with the correct form if there is one.
pub fn check_absolute(uri: &str) -> Result<(), String> {
    check_scheme(uri)?;
    if uri.ends_with(':') {
        return Err("nothing follows the scheme".to_owned());
    }
    if decode(uri).is_none() {
        return Err("each \"%\" must be followed by two hexadecimal digits".to_owned());
    }
    match normalized(uri) {
        Cow::Borrowed(_) => Ok(()),
        Cow::Owned(right) => Err(format!("invalid characters in the URI; write {right:?}")),
    }
}

/// Checks that a text begins with the scheme of a URI.
///
/// # Errors
/// A description of the error.
pub fn check_scheme(uri: &str) -> Result<(), String> {
    let scheme = uri.split_once(':').map(|(scheme, _)| scheme.as_bytes());
    let is_scheme = |scheme: &[u8]| {
        let is_scheme_byte = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
        scheme.first().is_some_and(u8::is_ascii_alphabetic) && scheme.iter().all(is_scheme_byte)
    };
    if scheme.is_some_and(is_scheme) {
        return Ok(());
    }
    Err(
        "missing scheme; expected a URI such as \"file:///notes.txt\" or \"notes://today\""
            .to_owned(),
    )
}

/// Checks that a text is the URL of a web page, and that its host is recognizable: users whom a server sends to the URL
/// must be able to see the host. All other schemes are refused because they can launch programs.
///
/// # Errors
/// A description of the error.
pub(crate) fn check_page(url: &str) -> Result<(), String> {
    check_absolute(url)?;
    let (scheme, rest) = url.split_once(':').unwrap_or_default();
    if !["https", "http"]
        .iter()
        .any(|it| scheme.eq_ignore_ascii_case(it))
    {
        return Err(
            "unsupported URL scheme; use \"https://\" (or \"http://\" on a private network)"
                .to_owned(),
        );
    }
    let rest = rest.strip_prefix("//").unwrap_or_default();
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.is_empty() || authority.starts_with(':') {
        return Err("missing host".to_owned());
    }
    if authority.contains('@') {
        return Err(
            "user information before \"@\" is not allowed: it could be mistaken for the host"
                .to_owned(),
        );
    }
    Ok(())
}

/// Appends bytes, and percent-encodes each that is not `kept`.
pub fn encode(out: &mut String, bytes: &[u8], kept: impl Fn(u8) -> bool) {
    for &byte in bytes {
        if byte.is_ascii() && kept(byte) {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").expect("writing to a String cannot fail");
        }
    }
}

/// Returns the URI with all characters percent-encoded that are not allowed in one, such as letters outside ASCII.
#[must_use]
pub fn normalized(uri: &str) -> Cow<'_, str> {
    let is_fit = |byte: u8| is_unreserved(byte) || is_reserved(byte) || byte == b'%';
    if uri.bytes().all(is_fit) {
        return Cow::Borrowed(uri);
    }
    let mut out = String::with_capacity(uri.len() + 16);
    encode(&mut out, uri.as_bytes(), is_fit);
    Cow::Owned(out)
}

/// Returns the bytes of a percent-encoded text. `None` if a `%` is not followed by two hexadecimal digits.
#[must_use]
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    let digit = |byte: Option<u8>| {
        char::from(byte?)
            .to_digit(16)
            .and_then(|it| u8::try_from(it).ok())
    };
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => digit(bytes.next())? << 4 | digit(bytes.next())?,
            byte => byte,
        });
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn encoding_round_trips(bytes: Vec<u8>) {
            let mut text = String::new();
            encode(&mut text, &bytes, is_unreserved);
            prop_assert_eq!(decode(&text), Some(bytes));
        }

        #[test]
        fn normalization_is_idempotent(text: String) {
            let once = normalized(&text).into_owned();
            prop_assert!(once.is_ascii());
            prop_assert_eq!(&*normalized(&once), &once);
        }
    }

    #[test]
    fn web_page_urls_are_recognized() {
        for url in [
            "https://example.com",
            "HTTP://localhost:8080/a?b#c@d",
            "https://[::1]/",
        ] {
            assert_eq!(check_page(url), Ok(()), "{url}");
        }
        for url in [
            "",
            "example.com",
            "--help",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "data:text/html,hello",
            "ms-settings:privacy",
            "https:",
            "https:example.com",
            "https://",
            "https:///path",
            "https://:80/",
            "https://bank.example@evil.example/",
            "https://bank.example:pay@evil.example",
            "https://evil.example\\@bank.example/",
            "https://example.com/ & calc.exe",
            "https://example.com/\n",
            "https://b\u{e4}nk.example/",
        ] {
            assert!(check_page(url).is_err(), "{url}");
        }
    }

    #[test]
    fn absolute_uris_are_recognized() {
        for uri in [
            "file:///a",
            "a:b",
            "urn:isbn:1",
            "x+y-z.1://h?q#f",
            "s://[::1]/%C3%A9",
        ] {
            assert_eq!(check_absolute(uri), Ok(()), "{uri}");
        }
        for uri in [
            "", "a", "/a", "//h/a", ":a", "1a:b", "a b:c", "a:", "a:%", "a:%0", "a:%0g", "a:é",
            "a:<b>",
        ] {
            assert!(check_absolute(uri).is_err(), "{uri}");
        }
        insta::assert_snapshot!(
            check_absolute("notes://é b").unwrap_err(),
            @r#"invalid characters in the URI; write "notes://%C3%A9%20b""#
        );
    }
}
