//! What a request is answered with, before it is written.

use std::sync::Arc;

use crate::{
    Result, Revision,
    protocol::{CallToolResult, encode_result, into_text},
};

/// A result on its way out.
#[derive(Debug)]
pub(crate) enum Body {
    /// JSON, as it goes onto the wire.
    Json(Box<str>),
    /// JSON, as it goes onto the wire, and shared by all who ask: a list that did not change.
    Shared(Arc<str>),
    /// The commonest result, which is serialized straight into the outbox.
    Tool(CallToolResult),
}

impl Body {
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
            Self::Tool(mut result) => return encode_result(out, &mut result, revision, stamp),
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
