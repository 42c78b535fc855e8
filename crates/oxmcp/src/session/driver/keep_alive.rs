//! Keep-alive pings, which detect that a legacy peer is gone.

use std::{sync::Arc, time::Duration};

use oxmcp_protocol::{EmptyParams, ErrorCode};
use tokio::time::sleep;

use crate::{
    logged::Logged,
    session::{connection::Connection, outbound::options::CallOptions},
};

/// Pings the peer every `interval` for as long as the connection lives, and closes it when `threshold` pings in a row are not
/// answered, or two cannot be sent. A peer that answers that it has no method `ping` is alive, and is not pinged again. While
/// no stream leads to the peer, as may be over HTTP, it is not pinged either.
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
            // A peer that waits for its user meanwhile must answer pings all the same.
            max_total: interval,
            ..CallOptions::default()
        };
        match connection
            .call("ping", &EmptyParams::default(), options)
            .await
        {
            Err(error) if error.code() == ErrorCode::METHOD_NOT_FOUND => return,
            Err(error) if error.is_closed() => return,
            // The stream that carried the ping has ended, perhaps before the ping was read.
            Err(error) if error.is_timeout() && connection.outbox.attachment() != attached => {}
            Err(error) if error.is_timeout() && unanswered + 1 < threshold => unanswered += 1,
            Err(error) if error.is_timeout() || error.is_network() && lost => {
                tracing::warn!(error = %Logged(&error), "the peer does not answer pings; closing the session");
                return connection.break_off("the peer stopped answering pings");
            }
            Err(error) => {
                tracing::debug!(error = %Logged(&error), "a ping failed");
                // One network error is tolerated. Any other answer, even an error, is a sign of life.
                lost = error.is_network();
                unanswered = 0;
            }
            Ok(_) => (lost, unanswered) = (false, 0),
        }
    }
}
