//! The caller: the sender of the messages on a connection.

#[cfg(feature = "http-server")]
use std::{fmt, sync::Arc};

use oxmcp_protocol::TraceContext;

use crate::transport::principal::Principal;

/// The caller: the sender of the messages on a connection, as far as the transport knows. Over pipes nothing is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caller {
    /// The principal that authentication has established.
    pub(crate) principal: Option<Principal>,
    /// The transport's own request that carried the message.
    #[cfg(feature = "http-server")]
    pub(crate) request: Option<Arc<dyn RequestHead>>,
    /// The trace context of that request, for messages without their own.
    pub(crate) trace: Option<Box<TraceContext>>,
    /// Whether no other message can arrive on this connection before the response, so that a slow handler delays none.
    pub(crate) is_alone: bool,
}

/// The head of an HTTP request that carried messages.
#[cfg(feature = "http-server")]
pub(crate) trait RequestHead: Send + Sync {
    fn parts(&self) -> &http::request::Parts;
}

#[cfg(feature = "http-server")]
impl fmt::Debug for dyn RequestHead {
    /// Nothing of it is shown: its headers contain the caller's token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestHead")
    }
}
