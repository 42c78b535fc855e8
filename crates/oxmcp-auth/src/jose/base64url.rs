//! Base64 as used in tokens: with the URL-safe alphabet, without padding.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

pub(crate) fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The bytes, if the text is exactly what [`encode`] would write: no padding, no white space, no spare bits.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}
