//! What a request is answered with, before it is written.

use std::{fmt, sync::Arc};

use crate::{
    Result, Revision,
    protocol::{CallToolResult, HasMeta, Project, TextResult, encode_result, into_text},
};

/// A result on its way out.
#[derive(Debug)]
pub(crate) enum Body {
    /// JSON, as it goes onto the wire.
    Json(Box<str>),
    /// JSON in one line, as it goes onto the wire, and shared by all who ask: a list that did not change.
    Shared(Arc<str>),
    /// The commonest result.
    Text(TextResult),
    /// Any other result of a tool, which is serialized straight into the outbox.
    Tool(CallToolResult),
    /// The result of any other method.
    Other(Box<dyn Encode>),
}

/// A result that can be written, whatever its type.
pub(crate) trait Encode: fmt::Debug + Send {
    fn encode(&mut self, out: &mut Vec<u8>, revision: Revision, stamp: Option<&str>) -> Result<()>;
}

impl<R: Project + HasMeta + fmt::Debug + Send> Encode for R {
    fn encode(&mut self, out: &mut Vec<u8>, revision: Revision, stamp: Option<&str>) -> Result<()> {
        encode_result(out, self, revision, stamp)
    }
}

impl Body {
    /// A result of any type.
    pub(crate) fn of(result: impl Encode + 'static) -> Self {
        Self::Other(Box::new(result))
    }

    /// Whether its JSON is known to have no line break.
    pub(crate) fn is_line(&self) -> bool {
        matches!(self, Self::Shared(_) | Self::Text(_))
    }

    /// Appends the result as JSON, as a peer that speaks `revision` must see it. `stamp` is the `serverInfo` for it.
    pub(crate) fn encode(
        self,
        out: &mut Vec<u8>,
        revision: Revision,
        stamp: Option<&str>,
    ) -> Result<()> {
        match self {
            Self::Json(json) => out.extend_from_slice(json.as_bytes()),
            Self::Shared(json) => out.extend_from_slice(json.as_bytes()),
            Self::Text(mut result) => return encode_result(out, &mut result, revision, stamp),
            Self::Tool(mut result) => return encode_result(out, &mut result, revision, stamp),
            Self::Other(mut result) => return result.encode(out, revision, stamp),
        }
        Ok(())
    }

    /// The result as JSON of its own.
    pub(crate) fn into_json(self, revision: Revision, stamp: Option<&str>) -> Result<Box<str>> {
        match self {
            Self::Json(json) => Ok(json),
            other => {
                let mut out = Vec::new();
                other.encode(&mut out, revision, stamp)?;
                into_text(out)
            }
        }
    }
}
