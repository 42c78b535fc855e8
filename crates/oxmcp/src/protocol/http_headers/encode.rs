//! How any text becomes the value of a header.
//!
//! See [value encoding](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#value-encoding).

use std::borrow::Cow;

use data_encoding::BASE64;

use super::names::{CLOSE, OPEN};

/// The value of a header that stands for a text. It is the text itself wherever that survives the way.
pub(crate) fn encode(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{OPEN}{}{CLOSE}", BASE64.encode(text.as_bytes())))
}

/// Whether a text arrives as it is: visible, without spaces at its ends, which are cut off on the way, and not to be taken
/// for an encoded one.
fn is_plain(text: &str) -> bool {
    let is_visible = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let is_cut_off = text.starts_with(' ') || text.ends_with(' ');
    let looks_encoded = text.starts_with(OPEN) && text.ends_with(CLOSE);
    is_visible && !is_cut_off && !looks_encoded
}
