//! Annotations and icons of content, resources, tools and prompts.
//!
//! See [annotations](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#annotations).

use serde::{Deserialize, Serialize};

use crate::{
    uri::check_absolute,
    values::{
        json::optional_number,
        open_enum::{open_enum, setters},
    },
};

/// Annotations of content and resources, for clients: the audience, the priority and the time of the last change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Annotations {
    /// The intended audience.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::lenient::optional_list"
    )]
    pub audience: Option<Vec<Role>>,
    /// The priority, from 0 (entirely optional) to 1 (required).
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "optional_number"
    )]
    pub priority: Option<f64>,
    /// The time of the last change, in ISO 8601 (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

setters!(Annotations {
    /// Sets the audience.
    with_audience => audience: Vec<Role>,
    /// Sets the priority, from 0 to 1.
    with_priority => priority: f64,
    /// Sets the time of the last change, in ISO 8601.
    with_last_modified => last_modified: String,
});

/// The sender or the audience of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Role {
    /// The person who uses the application.
    User,
    /// The model.
    Assistant,
}

/// An icon for user interfaces (2025-11-25 and later).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Icon {
    /// The URI of the image: an `https:`, `http:` or `data:` URI.
    pub src: String,
    /// The MIME type of the image, if the source does not tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The sizes at which the icon can be used, like `48x48` or `any`. An empty list means all sizes.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::lenient::list"
    )]
    pub sizes: Vec<String>,
    /// The theme that the icon is made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme: Option<IconTheme>,
}

impl Icon {
    /// Creates an icon for all sizes and themes.
    #[must_use]
    pub fn new(src: impl Into<String>) -> Self {
        Self {
            src: src.into(),
            ..Self::default()
        }
    }

    /// Checks that the icon is fetched from the web or embedded in its URI. Other schemes reach files, programs or networks of
    /// the application that displays the icon, and icons come from servers that need not be trusted.
    ///
    /// ```
    /// use oxmcp_protocol::Icon;
    ///
    /// assert!(Icon::new("https://example.com/icon.png").check().is_ok());
    /// assert!(Icon::new("javascript:alert(1)").check().is_err());
    /// ```
    ///
    /// # Errors
    /// If the URI has another scheme or none, or is a URL with characters that no URL may have, with a description of the
    /// problem.
    pub fn check(&self) -> Result<(), String> {
        let scheme = self.src.split_once(':').map_or("", |(scheme, _)| scheme);
        let is = |name: &str| scheme.eq_ignore_ascii_case(name);
        let wrong = if is("data") {
            // Images are often embedded as they are, without percent encoding.
            return Ok(());
        } else if is("https") || is("http") {
            match check_absolute(&self.src) {
                Ok(()) => return Ok(()),
                Err(wrong) => wrong,
            }
        } else {
            "unsupported URL scheme for an icon".to_owned()
        };
        let shown: String = self.src.chars().take(64).collect();
        Err(format!(
            "invalid icon {shown:?}: {wrong}; expected an `https:`, `http:` or `data:` URI"
        ))
    }
}

setters!(Icon {
    /// Sets the MIME type.
    with_mime_type => mime_type: String,
    /// Sets the theme.
    with_theme => theme: IconTheme,
});

open_enum! {
    /// The background that an icon is made for.
    pub enum IconTheme {
        /// A light background.
        Light = "light",
        /// A dark background.
        Dark = "dark",
    }
}
