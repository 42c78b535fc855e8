//! Log messages from server to client.
//!
//! See [logging](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/logging).

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::{meta::object::Meta, values::open_enum::setters};

/// The severity of a log message, by RFC 5424. Levels are ordered: `Debug` is the least severe.
///
/// ```
/// use oxmcp_protocol::LoggingLevel;
///
/// assert!(LoggingLevel::Debug < LoggingLevel::Emergency);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum LoggingLevel {
    /// Details for debugging.
    Debug,
    /// Events of normal operation.
    Info,
    /// Normal but significant events.
    Notice,
    /// A condition that may lead to an error.
    Warning,
    /// An error.
    Error,
    /// The failure of a component.
    Critical,
    /// A condition that requires action at once.
    Alert,
    /// The system is unusable.
    Emergency,
}

impl LoggingLevel {
    /// Returns the name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

impl fmt::Display for LoggingLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The params of `logging/setLevel` (2025-11-25 and earlier).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SetLevelParams {
    /// The least severe level that the client wants to receive.
    pub level: LoggingLevel,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl SetLevelParams {
    /// Creates the params for a level.
    #[must_use]
    pub fn new(level: LoggingLevel) -> Self {
        Self {
            level,
            meta: Meta::default(),
        }
    }
}

/// The params of `notifications/message`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LoggingMessageParams {
    /// The severity of the message.
    pub level: LoggingLevel,
    /// The name of the logger that issues the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logger: Option<String>,
    /// The data to log: any JSON, most often an object or a string.
    pub data: Box<RawValue>,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl LoggingMessageParams {
    /// Creates a message without the name of a logger.
    ///
    /// # Errors
    /// If the data cannot be serialized as JSON, for example a map whose keys are not strings.
    pub fn new(level: LoggingLevel, data: &impl Serialize) -> serde_json::Result<Self> {
        Ok(Self {
            level,
            logger: None,
            data: to_raw_value(data)?,
            meta: Meta::default(),
        })
    }
}

setters!(LoggingMessageParams {
    /// Sets the name of the logger.
    with_logger => logger: String,
});
