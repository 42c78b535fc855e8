//! What a connection needs to know of the role at its end.

use std::{any::Any, fmt, sync::Arc};

use crate::{
    Result,
    jsonrpc::{RawNotification, RequestId},
    protocol::RequestParams,
    session::{
        Batch, BoxFuture, Connection,
        middleware::{Next, Request, Response},
    },
};

/// A request that has been admitted and waits to be served.
#[derive(Debug)]
pub(crate) struct Arrival<'a> {
    pub(crate) id: RequestId,
    pub(crate) method: &'a str,
    pub(crate) params: Option<&'a RequestParams<'a>>,
    /// The batch that the answer belongs to.
    pub(crate) batch: Option<Arc<Batch>>,
}

/// Which end of the connection this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// A client or a server at one end of one connection.
pub(crate) trait Role: fmt::Debug + Send + Sync + 'static {
    fn side(&self) -> Side;

    /// Itself, for those who know which role it is.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;

    /// Serves a request, through [`serve`](super::serve()) or [`respond_now`](super::respond_now). Does not block.
    fn request(&self, connection: &Arc<Connection>, arrival: Arrival<'_>);

    /// Takes a notification. What it changes in the session is changed when this returns; users' handlers wait in the
    /// lane.
    fn notification(
        &self,
        connection: &Arc<Connection>,
        notification: RawNotification<'_, RequestParams<'_>>,
    );

    /// The peer takes back a request that is none of its own. Returns whether there is such a request: servers end
    /// subscriptions that clients opened.
    fn ended(&self, connection: &Arc<Connection>, id: &RequestId) -> bool {
        let _ = (connection, id);
        false
    }

    /// Whether the peer speaks a revision with batches.
    fn has_batches(&self) -> bool {
        false
    }

    /// What `serverInfo` every result is stamped with, as a JSON object, where the peer expects one.
    fn stamp(&self) -> Option<&str> {
        None
    }

    /// The innermost of the incoming middleware.
    fn handle(&self, request: Request) -> BoxFuture<Result<Response>>;

    /// What outgoing messages go through first.
    fn outgoing(&self) -> Option<Next>;

    /// The `_meta` members that every request carries, as JSON members without braces.
    fn envelope(&self) -> Option<&str> {
        None
    }

    /// The connection is gone.
    fn closed(&self, connection: &Arc<Connection>);
}
