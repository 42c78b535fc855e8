//! Log messages from server to client.
//!
//! See [logging](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/logging).

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::{meta::object::Meta, values::open_enum::setters};

/// How severe a message is, by RFC 5424. Levels are ordered: `Debug` is the least.
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
    /// For whoever looks for a fault.
    Debug,
    /// What goes its normal way.
    Info,
    /// Normal, but worth knowing.
    Notice,
    /// It may go wrong.
    Warning,
    /// Something went wrong.
    Error,
    /// A part is broken.
    Critical,
    /// Somebody must act at once.
    Alert,
    /// Nothing works.
    Emergency,
}

impl LoggingLevel {
    /// The name on the wire.
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
    /// The least severe level that the client wants to hear of.
    pub level: LoggingLevel,
    /// What travels beside.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl SetLevelParams {
    /// The params for a level.
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
    /// How severe it is.
    pub level: LoggingLevel,
    /// Who says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logger: Option<String>,
    /// What is said: any JSON, most often an object or a string.
    pub data: Box<RawValue>,
    /// What travels beside.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl LoggingMessageParams {
    /// A message.
    ///
    /// # Errors
    /// Where the data cannot be JSON, for example a map whose keys are no strings.
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
    /// The same, said by somebody.
    with_logger => logger: String,
});
