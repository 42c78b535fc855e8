//! The result of a request, before serialization.

use std::{fmt, ops::Deref, sync::Arc};

use memchr::memchr2;
use oxmcp_protocol::{
    CallToolResult, Revision,
    internal::{HasMeta, Project, encode_result, into_text},
};

use crate::error::Result;

/// A result to be sent.
#[derive(Debug)]
pub(crate) enum Body {
    /// Serialized JSON.
    Json(Box<str>),
    /// Serialized JSON that is shared by all requests for it: an unchanged list.
    Shared(Line),
    /// The result of a tool, which is serialized straight into the outbox.
    Tool(CallToolResult),
    /// The result of any other method.
    Other(Box<dyn Encode>),
}

/// JSON in one line, which need not be searched for line breaks again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line(Arc<str>);

impl From<Box<str>> for Line {
    /// Line breaks can only be between tokens, where spaces are equivalent.
    fn from(json: Box<str>) -> Self {
        Self(match memchr2(b'\n', b'\r', json.as_bytes()) {
            Some(_) => json.replace(['\n', '\r'], " ").into(),
            None => json.into(),
        })
    }
}

impl Deref for Line {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// A result of any type that can be serialized.
pub(crate) trait Encode: fmt::Debug + Send {
    fn encode(
        &mut self,
        out: &mut Vec<u8>,
        revision: Revision,
        server_info: Option<&str>,
    ) -> Result<()>;
}

impl<R: Project + HasMeta + fmt::Debug + Send> Encode for R {
    fn encode(
        &mut self,
        out: &mut Vec<u8>,
        revision: Revision,
        server_info: Option<&str>,
    ) -> Result<()> {
        Ok(encode_result(out, self, revision, server_info)?)
    }
}

impl Body {
    /// A result of any type.
    pub(crate) fn of(result: impl Encode + 'static) -> Self {
        Self::Other(Box::new(result))
    }

    /// Whether it is known to be one line.
    pub(crate) fn is_line(&self) -> bool {
        matches!(self, Self::Shared(_))
    }

    /// Appends the result as JSON, in the form of `revision`. `server_info` is the `serverInfo` for it.
    pub(crate) fn encode(
        self,
        out: &mut Vec<u8>,
        revision: Revision,
        server_info: Option<&str>,
    ) -> Result<()> {
        match self {
            Self::Json(json) => out.extend_from_slice(json.as_bytes()),
            Self::Shared(json) => {
                // With space for the end of the message, for which the buffer would otherwise double after a long list.
                out.reserve(json.len() + "}\n".len());
                out.extend_from_slice(json.as_bytes());
            }
            Self::Tool(mut result) => encode_result(out, &mut result, revision, server_info)?,
            Self::Other(mut result) => return result.encode(out, revision, server_info),
        }
        Ok(())
    }

    /// Returns the result as JSON in a new buffer.
    pub(crate) fn into_json(
        self,
        revision: Revision,
        server_info: Option<&str>,
    ) -> Result<Box<str>> {
        match self {
            Self::Json(json) => Ok(json),
            other => {
                let mut out = Vec::new();
                other.encode(&mut out, revision, server_info)?;
                Ok(into_text(out)?)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_has_no_line_breaks() {
        let line = |json: &str| Line::from(Box::from(json));
        assert_eq!(*line("{\n\r\"a\\n\": 1}"), *"{  \"a\\n\": 1}");
        assert_eq!(*line("[]"), *"[]");
    }
}
