//! What a resource holds: text or bytes.
//!
//! See [resource contents](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#resource-contents).

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser::SerializeStruct};

use super::{Blob, Meta, open_enum::setters};

/// The contents of a resource, or of a part of it.
///
/// ```
/// use oxmcp::protocol::ResourceContents;
///
/// let contents = ResourceContents::text("file:///a.txt", "hello").with_mime_type("text/plain");
/// assert_eq!(contents.as_text(), Some("hello"));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ResourceContents {
    /// What it is read by. Where a handler of a server leaves it empty, it is the URI that is read.
    pub uri: String,
    /// What it is, where that is known.
    pub mime_type: Option<String>,
    /// Its text or its bytes.
    pub body: ResourceBody,
    /// What travels beside.
    pub meta: Meta,
}

/// What a resource holds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ResourceBody {
    /// Text.
    Text(String),
    /// Bytes.
    Blob(Blob),
}

impl ResourceContents {
    /// Text.
    #[must_use]
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(uri, ResourceBody::Text(text.into()))
    }

    /// Bytes.
    #[must_use]
    pub fn blob(uri: impl Into<String>, bytes: impl Into<Blob>) -> Self {
        Self::new(uri, ResourceBody::Blob(bytes.into()))
    }

    pub(crate) fn new(uri: impl Into<String>, body: ResourceBody) -> Self {
        Self {
            uri: uri.into(),
            mime_type: None,
            body,
            meta: Meta::default(),
        }
    }

    /// The text, where it is text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match &self.body {
            ResourceBody::Text(text) => Some(text),
            ResourceBody::Blob(_) => None,
        }
    }
}

setters!(ResourceContents {
    /// The same with a MIME type.
    with_mime_type => mime_type: String,
});

/// The contents of what is being read: a server fills in the URI.
macro_rules! without_uri {
    ($($from:ty => $body:ident),+ $(,)?) => { $(
        impl From<$from> for ResourceContents {
            fn from(body: $from) -> Self {
                Self::new("", ResourceBody::$body(body.into()))
            }
        }
    )+ };
}

without_uri!(
    String => Text,
    &str => Text,
    Box<str> => Text,
    Cow<'_, str> => Text,
    Blob => Blob,
    Bytes => Blob,
    Vec<u8> => Blob,
);

impl Serialize for ResourceContents {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("ResourceContents", 4)?;
        object.serialize_field("uri", &self.uri)?;
        if let Some(mime_type) = &self.mime_type {
            object.serialize_field("mimeType", mime_type)?;
        }
        match &self.body {
            ResourceBody::Text(text) => object.serialize_field("text", text)?,
            ResourceBody::Blob(blob) => object.serialize_field("blob", blob)?,
        }
        if !self.meta.is_absent() {
            object.serialize_field("_meta", &self.meta)?;
        }
        object.end()
    }
}

impl<'de> Deserialize<'de> for ResourceContents {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Members {
            uri: String,
            mime_type: Option<String>,
            text: Option<String>,
            blob: Option<Blob>,
            #[serde(rename = "_meta", default)]
            meta: Meta,
        }

        let members = Members::deserialize(deserializer)?;
        let body = match (members.text, members.blob) {
            (Some(text), None) => ResourceBody::Text(text),
            (None, Some(blob)) => ResourceBody::Blob(blob),
            _ => {
                return Err(de::Error::custom(
                    "resource contents need `text` or `blob`, and not both",
                ));
            }
        };
        Ok(Self {
            uri: members.uri,
            mime_type: members.mime_type,
            body,
            meta: members.meta,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_text_or_bytes() {
        let blob = ResourceContents::blob("a:b", vec![1, 2, 3]);
        let text = serde_json::to_string(&blob).unwrap();
        assert_eq!(text, r#"{"uri":"a:b","blob":"AQID"}"#);
        assert_eq!(
            serde_json::from_str::<ResourceContents>(&text).unwrap(),
            blob
        );
        for bad in [r#"{"uri":"a:b"}"#, r#"{"uri":"a:b","text":"","blob":""}"#] {
            assert!(
                serde_json::from_str::<ResourceContents>(bad).is_err(),
                "{bad}"
            );
        }
    }
}
