//! Resources: data that a server offers for reading, as text or bytes.
//!
//! See [resource contents](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#resource-contents).
//!
//! See [resources](https://modelcontextprotocol.io/specification/2026-07-28/server/resources).

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser::SerializeStruct};

use crate::{
    meta::object::Meta,
    mrtr::responses::InputResponses,
    types::{
        annotations::{Annotations, Icon},
        caching::{self, CacheScope},
        pagination::page,
    },
    values::{blob::Blob, open_enum::setters},
};

/// A resource as an entry of a listing, without a handler. The resource that is registered with a server, with its handler, is
/// `oxmcp::Resource`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Resource {
    /// The URI by which clients read the resource.
    pub uri: String,
    /// Its name, for programs.
    pub name: String,
    /// Its name, for people (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A description of its contents, for a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The MIME type of its contents, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The audience, the priority and the time of the last change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Its size in bytes, before any encoding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Icons for user interfaces (2025-11-25 and later).
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::lenient::list"
    )]
    pub icons: Vec<Icon>,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl Resource {
    /// Creates a resource with a URI and a name.
    #[must_use]
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            name: name.into(),
            ..Self::default()
        }
    }
}

setters!(Resource {
    /// Sets the title, the name for people.
    with_title => title: String,
    /// Sets the description.
    with_description => description: String,
    /// Sets the MIME type.
    with_mime_type => mime_type: String,
    /// Sets the annotations.
    with_annotations => annotations: Annotations,
    /// Sets the size in bytes.
    with_size => size: u64,
});

/// A resource template as an entry of a listing: a pattern of URIs that a server can read, without a handler. The template that
/// is registered with a server, with its handler, is `oxmcp::ResourceTemplate`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceTemplate {
    /// The pattern, a URI template by RFC 6570.
    pub uri_template: String,
    /// Its name, for programs.
    pub name: String,
    /// Its name, for people (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A description of the contents of the matching resources, for a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The MIME type of the matching resources, if all have the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The audience, the priority and the time of the last change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Icons for user interfaces (2025-11-25 and later).
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::lenient::list"
    )]
    pub icons: Vec<Icon>,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl ResourceTemplate {
    /// Creates a template with a pattern and a name.
    #[must_use]
    pub fn new(uri_template: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            uri_template: uri_template.into(),
            name: name.into(),
            ..Self::default()
        }
    }
}

setters!(ResourceTemplate {
    /// Sets the title, the name for people.
    with_title => title: String,
    /// Sets the description.
    with_description => description: String,
    /// Sets the MIME type.
    with_mime_type => mime_type: String,
    /// Sets the annotations.
    with_annotations => annotations: Annotations,
});

/// The params of `resources/read`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadResourceParams {
    /// The URI of the resource.
    pub uri: String,
    /// The responses to the server's input requests, if this request is a retry (2026-07-28 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<InputResponses>,
    /// The state that the server sent with its input requests, unchanged, if this request is a retry (2026-07-28 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl ReadResourceParams {
    /// Creates the params for a resource.
    #[must_use]
    pub fn new(uri: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            ..Self::default()
        }
    }
}

/// The result of `resources/read`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadResourceResult {
    /// The contents of the resource: one part, or several if the resource has parts.
    #[serde(deserialize_with = "crate::lenient::list")]
    pub contents: Vec<ResourceContents>,
    /// How long the result stays fresh, in milliseconds (2026-07-28 and later).
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "caching::ttl"
    )]
    pub ttl_ms: Option<u64>,
    /// The scope in which a cached copy may be shared (2026-07-28 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl ReadResourceResult {
    /// Creates a result with these contents.
    #[must_use]
    pub fn new(contents: impl Into<Vec<ResourceContents>>) -> Self {
        Self {
            contents: contents.into(),
            ..Self::default()
        }
    }
}

impl From<ResourceContents> for ReadResourceResult {
    fn from(contents: ResourceContents) -> Self {
        Self::new([contents])
    }
}

page! {
    /// The result of `resources/list`: one page.
    pub struct ListResourcesResult {
        /// The resources of this page.
        pub resources: Vec<Resource>,
    }
}

page! {
    /// The result of `resources/templates/list`: one page.
    pub struct ListResourceTemplatesResult {
        /// The templates of this page.
        pub resource_templates: Vec<ResourceTemplate>,
    }
}

/// The params of `resources/subscribe` and `resources/unsubscribe` (2025-11-25 and earlier).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscribeParams {
    /// The URI of the resource whose updates are wanted, or no longer wanted.
    pub uri: String,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl SubscribeParams {
    /// Creates the params for a resource.
    #[must_use]
    pub fn new(uri: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            ..Self::default()
        }
    }
}

/// Returns whether a change of `part` is a change of `whole`: both are the same resource, or `part` is a sub-resource of `whole`.
#[must_use]
pub fn uri_covers(whole: &str, part: &str) -> bool {
    part.strip_prefix(whole).is_some_and(|rest| {
        rest.is_empty() || whole.ends_with('/') || rest.starts_with(['/', '?', '#'])
    })
}

/// The params of `notifications/resources/updated`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceUpdatedParams {
    /// The URI of the resource that changed, or of a resource of which it is a part.
    pub uri: String,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl ResourceUpdatedParams {
    /// Creates the params for a resource.
    #[must_use]
    pub fn new(uri: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            ..Self::default()
        }
    }
}

/// The contents of a resource, or of a part of it.
///
/// ```
/// use oxmcp_protocol::ResourceContents;
///
/// let contents = ResourceContents::text("file:///a.txt", "hello").with_mime_type("text/plain");
/// assert_eq!(contents.as_text(), Some("hello"));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ResourceContents {
    /// The URI of the contents. If a handler of a server leaves it empty, the server sets it to the URI of the request.
    pub uri: String,
    /// The MIME type of the contents, if it is known.
    pub mime_type: Option<String>,
    /// The text or the bytes.
    pub body: ResourceBody,
    /// Metadata of the protocol and of extensions (`_meta`).
    pub meta: Meta,
}

/// The body of the contents of a resource.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ResourceBody {
    /// Text.
    Text(String),
    /// Bytes.
    Blob(Blob),
}

impl ResourceBody {
    /// Returns the size in bytes.
    #[doc(hidden)]
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Blob(blob) => blob.len(),
        }
    }
}

impl ResourceContents {
    /// Creates contents of text.
    #[must_use]
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(uri, ResourceBody::Text(text.into()))
    }

    /// Creates contents of bytes.
    #[must_use]
    pub fn blob(uri: impl Into<String>, bytes: impl Into<Blob>) -> Self {
        Self::new(uri, ResourceBody::Blob(bytes.into()))
    }

    #[doc(hidden)]
    pub fn new(uri: impl Into<String>, body: ResourceBody) -> Self {
        Self {
            uri: uri.into(),
            mime_type: None,
            body,
            meta: Meta::default(),
        }
    }

    /// Returns the text, if the contents are text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match &self.body {
            ResourceBody::Text(text) => Some(text),
            ResourceBody::Blob(_) => None,
        }
    }
}

setters!(ResourceContents {
    /// Sets the MIME type.
    with_mime_type => mime_type: String,
});

/// Conversions of text and bytes into contents without a URI, which the server fills in.
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
                    "resource contents must have either `text` or `blob`",
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
