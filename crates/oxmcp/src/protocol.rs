//! Types of the protocol, under the specification's names: those of the crate `oxmcp-protocol`.
//!
//! Types hold the members of all revisions at once; their docs say which revisions have which. What is sent is made
//! to fit the peer's revision on its way out, so nothing else has to care.
//!
//! Structs are open for members that later revisions add, and enums for variants: make them by their constructors,
//! and set what else there is to set.
//!
//! ```
//! use oxmcp::protocol::{Tool, ToolAnnotations};
//!
//! let mut tool = Tool::new("add", serde_json::json!({"type": "object"}))
//!     .with_description("Add two numbers")
//!     .with_annotations(ToolAnnotations::default().with_read_only_hint(true));
//! tool.meta.insert("com.example/cost", 3);
//! ```

#[doc(inline)]
pub use oxmcp_protocol::{Revision, method, revision, types::*};
// old names
pub(crate) use oxmcp_protocol::internal::{
    RawInputRequest as AskedInput, RawInputRequired as Asked, ResultIndex as Outline,
    uri_covers as covers, with_input_responses as with_answers, *,
};

pub(crate) mod http_headers {
    pub(crate) use oxmcp_protocol::http_headers::{
        ParamHeaders, ReceivedHeader as Given, decode, encode, names,
    };
}

pub(crate) mod negotiation {
    pub(crate) use oxmcp_protocol::internal::negotiation::{
        ProbeOutcome as Verdict, is_answer, on_discovered, on_error, on_refused,
    };
}

use crate::error::{Error, Result};

/// Appends a result as a peer of revision `to` must see it.
///
/// # Errors
/// [`ErrorCode::INTERNAL_ERROR`](crate::ErrorCode::INTERNAL_ERROR) where it cannot be JSON; then nothing is appended.
pub(crate) fn encode_result<R: Project + HasMeta>(
    out: &mut Vec<u8>,
    result: &mut R,
    to: Revision,
    server_info: Option<&str>,
) -> Result<()> {
    oxmcp_protocol::internal::encode_result(out, result, to, server_info).map_err(Error::from)
}

/// The same for a result that an extension defines.
///
/// # Errors
/// As [`encode_result`].
pub(crate) fn encode_payload<R: Payload>(
    out: &mut Vec<u8>,
    result: &mut R,
    to: Revision,
    server_info: Option<&str>,
) -> Result<()> {
    oxmcp_protocol::internal::encode_payload(out, result, to, server_info).map_err(Error::from)
}

/// Makes text of what [`encode_result`] has written into an empty buffer.
pub(crate) fn into_text(json: Vec<u8>) -> Result<Box<str>> {
    oxmcp_protocol::internal::into_text(json).map_err(Error::from)
}

/// The error for a request made in a revision that is not served.
pub(crate) fn unsupported_version(served: &[Revision], requested: &str) -> Error {
    oxmcp_protocol::internal::unsupported_version(served, requested).into()
}
