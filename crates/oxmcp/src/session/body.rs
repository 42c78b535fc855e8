//! What a request is answered with, before it is written.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::{
    Result, Revision,
    protocol::{CallToolResult, encode_result, raw_value},
};

/// A result on its way out.
#[derive(Debug)]
pub(crate) enum Body {
    /// As it goes onto the wire.
    Json(Box<RawValue>),
    /// As it goes onto the wire, and shared by all who ask: a list that did not change.
    Shared(Arc<RawValue>),
    /// The commonest result, which is serialized straight into the outbox.
    Tool(Box<CallToolResult>),
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
            Self::Json(json) => out.extend_from_slice(json.get().as_bytes()),
            Self::Shared(json) => out.extend_from_slice(json.get().as_bytes()),
            Self::Tool(mut result) => return encode_result(out, &mut *result, revision, stamp),
        }
        Ok(())
    }

    /// The result as JSON of its own.
    pub(crate) fn into_json(
        self,
        revision: Revision,
        stamp: Option<&str>,
    ) -> Result<Box<RawValue>> {
        match self {
            Self::Json(json) => Ok(json),
            other => {
                let mut out = Vec::new();
                other.encode(&mut out, revision, stamp)?;
                raw_value(out)
            }
        }
    }
}
