//! The content of a file.

use bytes::Bytes;

/// A file of a skill, as it was read. Files of a skill with digests are verified.
///
/// It is still untrusted input: the server wrote both the file and its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillContent {
    uri: String,
    bytes: Bytes,
    mime_type: Option<String>,
}

impl SkillContent {
    pub(super) fn new(uri: &str, bytes: Bytes, mime_type: Option<String>) -> Self {
        Self {
            uri: uri.to_owned(),
            bytes,
            mime_type,
        }
    }

    /// Returns the URI.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Returns the bytes.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns the text, if the file is UTF-8.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.bytes).ok()
    }

    /// Returns the MIME type that the server declares. It is not verified.
    #[must_use]
    pub fn mime_type(&self) -> Option<&str> {
        self.mime_type.as_deref()
    }
}
