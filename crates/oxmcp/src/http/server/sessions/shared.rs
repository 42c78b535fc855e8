//! The seam between a session and a cluster. A session of one node has no [`SharedSession`], and nothing else to do with nodes.

use std::{sync::Arc, time::Duration};

use futures_core::future::BoxFuture;
use futures_util::future::join_all;
use http::{Response, request::Parts};
use oxmcp_protocol::{
    RequestId,
    internal::{Envelope, RequestParams},
};
use tokio::task::JoinHandle;

use super::{stream_log::StreamLog, stream_writer::StreamKey, streams::Purpose};
use crate::{http::server::response::ResponseBody, session::task::spawn};

/// The number of records that are renewed concurrently.
const RENEWED_AT_ONCE: usize = 32;

/// A session that other nodes know, as `cluster/shared_session.rs` implements it.
pub(crate) trait SharedSession: Send + Sync {
    /// Keeps the record of the session for a request. Returns a task that the request must wait for if other nodes may have ended
    /// the session.
    fn keep(self: Arc<Self>, parts: &Arc<Parts>) -> Option<JoinHandle<()>>;

    /// Saves settings that the client has changed.
    fn save(self: Arc<Self>) -> JoinHandle<()>;

    /// The renewal of the record of a session in use, unless it was renewed within the interval.
    fn renewal(self: Arc<Self>, interval: Duration) -> Option<BoxFuture<'static, ()>>;

    /// Whether other nodes have ended the session.
    fn is_over(&self) -> bool;

    /// Removes the record of a session that is over. If the client has ended it, other nodes get time to learn that.
    fn remove(&self, by_client: bool) -> BoxFuture<'_, ()>;

    /// Stops listening to other nodes: the session is no longer registered.
    fn unsubscribe(&self);

    /// Relays a message that concerns another node. `None` if it is for this one.
    fn relay(
        &self,
        message: &Envelope<'_, RequestParams<'_>>,
        text: &[u8],
    ) -> Option<BoxFuture<'static, Response<ResponseBody>>>;

    /// Relays such messages of a batch. `None` if there are none.
    fn relay_batch(&self, body: &[u8]) -> Option<BoxFuture<'static, ()>>;

    /// The first line of a stream that answers this request, or the requests of this batch, for the nodes that may end the stream.
    fn opening(&self, id: Option<&RequestId>, batch: Option<&[u8]>) -> Option<Vec<u8>>;

    /// The log of a stream that starts on this node.
    fn log(
        &self,
        key: StreamKey,
        has_empty: bool,
        purpose: Purpose,
        opening: Option<Vec<u8>>,
    ) -> Box<dyn StreamLog>;

    /// The events after this one of a stream that another node writes.
    fn follow(&self, key: StreamKey, has_empty: bool, seen: u64) -> Box<dyn FollowedStream>;
}

/// A stream that another node writes.
pub(crate) trait FollowedStream: Send {
    /// The next events, encoded for the client. `None` at the end of the stream, or if it cannot continue. Cancel safe.
    fn next(&mut self) -> BoxFuture<'_, Option<Vec<u8>>>;

    /// Restarts after this event.
    fn restart(&mut self, seen: u64);
}

/// Renews the records of sessions in the background.
pub(crate) fn renew(mut renewals: Vec<BoxFuture<'static, ()>>) {
    if renewals.is_empty() {
        return;
    }
    spawn(async move {
        while !renewals.is_empty() {
            let rest = renewals.split_off(renewals.len().min(RENEWED_AT_ONCE));
            join_all(renewals).await;
            renewals = rest;
        }
    });
}
