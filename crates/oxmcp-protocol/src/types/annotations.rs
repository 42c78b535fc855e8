//! Annotations and icons of content, resources, tools and prompts.
//!
//! See [annotations](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#annotations).

use serde::{Deserialize, Serialize};

use crate::values::{
    json::optional_number,
    open_enum::{open_enum, setters},
};

/// For whom content is, and how much it matters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Annotations {
    /// For whom it is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<Vec<Role>>,
    /// How much it matters, from 0 (can be left out) to 1 (is needed).
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "optional_number"
    )]
    pub priority: Option<f64>,
    /// When it was changed last, in ISO 8601 (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

setters!(Annotations {
    /// The same for an audience.
    with_audience => audience: Vec<Role>,
    /// The same with a priority from 0 to 1.
    with_priority => priority: f64,
    /// The same with the time of the last change, in ISO 8601.
    with_last_modified => last_modified: String,
});

/// Who speaks, or is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// A picture that stands for something in a user interface (2025-11-25 and later).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Icon {
    /// Where it is: an `https:` or a `data:` URI.
    pub src: String,
    /// What it is, where the source does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The sizes it serves, like `48x48` or `any`. None means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<String>,
    /// The theme it is made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme: Option<IconTheme>,
}

impl Icon {
    /// An icon for all sizes and themes.
    #[must_use]
    pub fn new(src: impl Into<String>) -> Self {
        Self {
            src: src.into(),
            ..Self::default()
        }
    }

    /// Checks that it is fetched from the web or stands in the source itself. Other schemes reach files, programs or networks of
    /// whoever shows it, and icons come from servers that need not be trusted.
    ///
    /// ```
    /// use oxmcp_protocol::Icon;
    ///
    /// assert!(Icon::new("https://example.com/icon.png").check().is_ok());
    /// assert!(Icon::new("javascript:alert(1)").check().is_err());
    /// ```
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        let scheme = self.src.split_once(':').map_or("", |(scheme, _)| scheme);
        let is_safe = ["https", "http", "data"]
            .iter()
            .any(|safe| scheme.eq_ignore_ascii_case(safe));
        if is_safe {
            return Ok(());
        }
        let shown: String = self.src.chars().take(64).collect();
        Err(format!(
            "the icon {shown:?} would be shown by nobody: an icon is a URL of https or http, or a data: URI"
        ))
    }
}

setters!(Icon {
    /// The same with its MIME type.
    with_mime_type => mime_type: String,
    /// The same for a theme.
    with_theme => theme: IconTheme,
});

open_enum! {
    /// The background that an icon is made for.
    pub enum IconTheme {
        /// A light one.
        Light = "light",
        /// A dark one.
        Dark = "dark",
    }
}
