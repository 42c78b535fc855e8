//! The role at this end of a connection, which dispatches the messages of the peer.

use std::{any::Any, fmt, sync::Arc};

use oxmcp_protocol::{
    RequestId, Revision,
    internal::{RawNotification, RequestParams},
};

use crate::{
    debug::opaque_debug,
    error::Result,
    session::{
        connection::link::Link, inbound::batch::Batch, middleware::response::Response,
        outbound::outgoing::Outgoing, task::BoxFuture, tolerance::Tolerance,
    },
    transport::principal::Principal,
};

/// A connection, or a branch of one, with a role at this end.
pub(crate) type Connection = Link<dyn Role>;

/// A client or a server at one end of one connection.
///
/// Its implementations dispatch requests further, in `server/` and in `client/`.
pub(crate) trait Role: Any + fmt::Debug + Send + Sync {
    fn side(&self) -> Side;

    /// The revision of the session, once it is negotiated.
    fn revision(&self) -> Option<Revision>;

    /// The tolerance for messages of the peer that do not follow the specification.
    fn tolerance(&self) -> Arc<Tolerance>;

    /// The name of the peer, for logs.
    fn peer_name(&self) -> Option<String>;

    /// Serves a request, through [`run`](crate::session::inbound::run::run) or
    /// [`respond_inline`](crate::session::inbound::run::respond_inline). Does not block.
    fn request(&self, connection: &Arc<Connection>, arrival: Arrival<'_>);

    /// Takes a notification. Its effects on the session are complete when this returns; users' handlers wait in the
    /// [`NotificationQueue`](crate::session::notifications::queue::NotificationQueue). `sender` is given if the transport knows the sender of each message.
    fn notification(
        &self,
        connection: &Arc<Connection>,
        notification: RawNotification<'_, RequestParams<'_>>,
        sender: Option<&Principal>,
    );

    /// Handles a cancellation that names none of the peer's own requests. Returns whether it names a request of this side:
    /// servers end the subscriptions of clients in this way.
    fn ended(&self, connection: &Arc<Connection>, id: &RequestId) -> bool {
        let _ = (connection, id);
        false
    }

    /// Whether the peer speaks a revision with batches.
    fn has_batches(&self) -> bool {
        false
    }

    /// The `serverInfo` that is added to every result, as a JSON object, if the peer expects one.
    fn server_info(&self) -> Option<&str> {
        None
    }

    /// Whether there is incoming middleware.
    fn has_incoming(&self) -> bool {
        false
    }

    /// Whether there is outgoing middleware.
    fn has_outgoing(&self) -> bool {
        false
    }

    /// Passes a message through the outgoing middleware, which ends at the outlet of the message.
    fn pass_outgoing(&self, message: Outgoing) -> BoxFuture<Result<Response>> {
        message.send()
    }

    /// The `_meta` members that every request has, as JSON members without braces.
    fn envelope(&self) -> Option<&str> {
        None
    }

    /// Whether the session survives the end of this connection and continues over another one to the same peer: it is open, and
    /// the peer keeps none of its state.
    fn outlives_peer(&self) -> bool {
        false
    }

    /// Handles the restart of the peer, if the session [outlives](Self::outlives_peer) it.
    #[cfg(feature = "client")]
    fn restarted(&self, _connection: &Arc<Connection>) {}

    /// Whether a key of `_meta` belongs to an extension of this side.
    fn has_meta_key(&self, key: &str) -> bool;

    /// Cleans up after the connection has ended.
    fn closed(&self, connection: &Arc<Connection>);
}

/// One of the two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// An admitted request that waits to be served.
#[derive(Debug)]
pub(crate) struct Arrival<'a> {
    pub(crate) id: RequestId,
    pub(crate) method: &'a str,
    pub(crate) params: Option<&'a RequestParams<'a>>,
    /// The sender, if the transport knows the sender of each message.
    pub(crate) sender: Option<Principal>,
    /// The batch that the answer belongs to.
    pub(crate) batch: Option<Arc<Batch>>,
}

impl Connection {
    /// The role, if it is of this type: a server's or a client's.
    ///
    /// This is the only downcast of a role, and cannot be avoided: a handler's context leads to its server, whose features
    /// contain the handler, so one of these types must not name the next.
    pub(crate) fn role_as<R: Role>(&self) -> Option<Arc<R>> {
        let role: Arc<dyn Any + Send + Sync> = Arc::clone(self.role()) as _;
        role.downcast().ok()
    }
}

opaque_debug!(Connection, |it| {
    side: it.role().side(),
    unsent: it.outbox.unsent(),
    closing: it.is_closing(),
    ended: it.is_ended(),
});
