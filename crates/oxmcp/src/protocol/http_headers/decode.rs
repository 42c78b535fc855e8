//! What the value of a header stands for.
//!
//! See [value encoding](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#value-encoding).

use std::{borrow::Cow, fmt};

use data_encoding::BASE64;

use super::names::{CLOSE, OPEN};

/// The text that the value of a header stands for. Spaces and tabs around it are not part of it.
///
/// # Errors
/// Where the value holds what no header may hold, or is encoded wrongly.
pub(crate) fn decode(value: &[u8]) -> Result<Cow<'_, str>, Unreadable> {
    let legal = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~');
    if !value.iter().all(legal) {
        return Err(Unreadable::Characters);
    }
    let text = str::from_utf8(value).map_err(|_| Unreadable::Characters)?;
    let text = text.trim_matches([' ', '\t']);
    let encoded = text
        .strip_prefix(OPEN)
        .and_then(|rest| rest.strip_suffix(CLOSE));
    let Some(encoded) = encoded else {
        return Ok(Cow::Borrowed(text));
    };
    let bytes = BASE64.decode(encoded.as_bytes());
    let bytes = bytes.map_err(|_| Unreadable::Base64)?;
    let text = String::from_utf8(bytes).map_err(|_| Unreadable::Utf8)?;
    Ok(Cow::Owned(text))
}

/// Why the value of a header stands for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    Characters,
    Base64,
    Utf8,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Characters => {
                "it holds other characters than visible ASCII; encode it as =?base64?…?="
            }
            Self::Base64 => "what it holds between =?base64? and ?= is not Base64 with its padding",
            Self::Utf8 => "what it holds between =?base64? and ?= is not the Base64 of UTF-8",
        })
    }
}
