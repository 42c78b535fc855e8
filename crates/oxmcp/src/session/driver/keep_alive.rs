//! Keep-alive pings, which detect dead legacy peers.

use std::{sync::Arc, time::Duration};

use oxmcp_protocol::{EmptyParams, ErrorCode};
use tokio::time::sleep;

use crate::{
    logged::Logged,
    session::{connection::Connection, outbound::options::CallOptions},
};

/// Pings the peer every `interval` while the connection lives, and closes it when `threshold` pings in a row are not answered,
/// or two cannot be sent. A peer that responds that it has no method `ping` is alive, and is not pinged again. It is not pinged
/// either while no stream leads to it, as is possible over HTTP.
/// See [ping](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/ping).
pub(crate) async fn keep_alive(connection: Arc<Connection>, interval: Duration, threshold: u32) {
    let mut lost = false;
    let mut unanswered = 0;
    loop {
        tokio::select! {
            () = sleep(interval) => {}
            _ = connection.ended() => return,
        }
        let attached = connection.outbox.attachment();
        if attached.is_none() {
            continue;
        }
        let options = CallOptions {
            timeout: interval,
            // A peer must answer pings even while it waits for its user.
            max_total: interval,
            ..CallOptions::default()
        };
        match connection
            .call("ping", &EmptyParams::default(), options)
            .await
        {
            Err(error) if error.code() == ErrorCode::METHOD_NOT_FOUND => return,
            Err(error) if error.is_closed() => return,
            // The stream of the ping has ended, perhaps before the ping was read.
            Err(error) if error.is_timeout() && connection.outbox.attachment() != attached => {}
            Err(error) if error.is_timeout() && unanswered + 1 < threshold => unanswered += 1,
            Err(error) if error.is_timeout() || error.is_network() && lost => {
                tracing::warn!(error = %Logged(&error), "closing a session whose peer does not answer pings");
                return connection.break_off("the peer stopped answering pings");
            }
            Err(error) => {
                tracing::debug!(error = %Logged(&error), "ping failed");
                // One network error is tolerated. Any other response, even an error, is a sign of life.
                lost = error.is_network();
                unanswered = 0;
            }
            Ok(_) => (lost, unanswered) = (false, 0),
        }
    }
}
