//! Replay of a call: the server calls a tool again by itself, with the stored data of the client's call.

use std::sync::Arc;

use oxmcp_json::Text;
use oxmcp_protocol::{
    ClientCapabilities, Implementation, InputResponses, Method, RequestId, Revision,
    method::CallTool,
};
use oxmcp_schema::internal::quote_text;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::ServerRole;
use crate::{
    error::{Error, Result},
    server::{ask, registry::Callable, server::Server, tool::StoredCall},
    session::{
        connection::{Caller, Connection, ContextParts, Peer, RequestContext},
        handler::{detached::DetachedWork, journal::RoundRequest},
        inbound::body::Body,
        task::BoxFuture,
    },
    transport::principal::Principal,
};

/// The data for replaying a call, in addition to [`StoredCall`].
pub(crate) struct Replay<'a> {
    pub(crate) tool: &'a str,
    pub(crate) revision: Revision,
    /// The name of the principal that made the call.
    pub(crate) owner: Option<&'a str>,
    /// The extension that the tool must still have.
    pub(crate) extension: &'a str,
    /// Receives the handler's messages and questions, from the start.
    pub(crate) work: Arc<dyn DetachedWork>,
}

impl StoredCall {
    /// Calls the tool again, with its layers and without the middleware. Visibility is not checked again, since the new context
    /// may differ from the one in which the client saw the tool.
    ///
    /// # Errors
    /// If the tool was removed or has lost the extension, and if the stored data cannot be read.
    pub(crate) fn replay(
        &self,
        server: &Server,
        replay: Replay<'_>,
    ) -> Result<BoxFuture<Result<Body>>> {
        let features = server.features();
        let tool = features.tools.get_any(replay.tool);
        let tool = tool.filter(|it| it.requires().iter().any(|id| id == replay.extension));
        let tool = tool.ok_or_else(|| {
            let name = quote_text(replay.tool);
            Error::internal(format!(
                "could not resume the task: the server no longer has a tool {name} that runs as a task"
            ))
        })?;
        let caller = Caller {
            principal: replay.owner.map(Principal::new),
            ..Caller::default()
        };
        // The connection has no driver: the handler's messages go to `work`, or are dropped.
        let role = ServerRole::new(server.clone());
        let connection = Connection::of(role, Arc::clone(&features.limits), caller);
        let peer = Peer {
            revision: replay.revision,
            implementation: self
                .client
                .as_ref()
                .map(|it| parse::<Implementation>(it))
                .transpose()?,
            capabilities: parse::<ClientCapabilities>(&self.capabilities)?,
        };
        let id = RequestId::from("replayed");
        let mut parts = ContextParts::new(&connection, Some(id), Arc::new(peer));
        parts.meta = self.meta.as_ref().map(|it| it.get().into());
        parts.detached.set(replay.work);
        parts.set_answered();
        let arguments = Text::from(&*self.arguments);
        let reply = match &self.reply {
            Some((state, responses)) => Some((state.clone(), parse::<InputResponses>(responses)?)),
            None => None,
        };
        let request = RoundRequest::new(CallTool::NAME, replay.tool, arguments);
        ask::begin_again(&parts, request, reply);
        let cx = RequestContext::new(Arc::new(parts));
        Ok(tool.call(cx, arguments).future)
    }
}

fn parse<T: DeserializeOwned>(stored: &RawValue) -> Result<T> {
    serde_json::from_str(stored.get()).map_err(unfit)
}

fn unfit(error: serde_json::Error) -> Error {
    Error::internal(format!("could not read the stored call: {error}")).with_source(error)
}
