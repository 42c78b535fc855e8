//! The parameters of tools that a session's transport repeats in headers, as the listed tools declare them.
//!
//! See [custom headers](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#custom-headers-from-tool-parameters).

use std::sync::atomic::{AtomicU64, Ordering};

use oxmcp_protocol::{ErrorCode, ListToolsResult, Tool};
use tokio::sync::{Mutex, MutexGuard};

use crate::{error::Error, logged::Logged, transport::mirror::HeaderMirror};

/// The maximum number of tools of a page that are named in the log.
const MAX_NAMED: usize = 8;

/// The mirror of a session's transport, if it has one, and the listings of tools that renew its contents.
#[derive(Debug)]
pub(crate) struct HeaderMirroring {
    mirror: Option<HeaderMirror>,
    /// Held while the tools are listed because a call was refused: all calls that wait for the lock share the listing.
    listing: Mutex<()>,
    /// The number of listings that were made because a call was refused.
    listings: AtomicU64,
}

impl HeaderMirroring {
    pub(crate) fn new(mirror: Option<HeaderMirror>) -> Self {
        Self {
            mirror,
            listing: Mutex::default(),
            listings: AtomicU64::new(0),
        }
    }

    pub(crate) fn mirror(&self) -> Option<&HeaderMirror> {
        self.mirror.as_ref()
    }

    /// The number of times that the tools were listed because a call was refused.
    pub(crate) fn listings(&self) -> u64 {
        self.listings.load(Ordering::Relaxed)
    }

    pub(crate) async fn lock_listing(&self) -> MutexGuard<'_, ()> {
        self.listing.lock().await
    }

    pub(crate) fn count_listing(&self) {
        self.listings.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether a call of a tool that failed with this error may succeed once the tools were listed again.
    pub(crate) fn is_mismatch(&self, error: &Error) -> bool {
        self.mirror.is_some() && error.is_protocol() && error.code() == ErrorCode::HEADER_MISMATCH
    }

    /// Learns from a page of listed tools which params they want mirrored, and removes tools whose declarations are
    /// invalid.
    pub(crate) fn screen(&self, page: &mut ListToolsResult) {
        let Some(mirror) = &self.mirror else {
            return;
        };
        let mut left_out = 0_usize;
        page.tools.retain(|tool| {
            let Err(unsound) = mirror.learn(tool) else {
                return true;
            };
            if unsound.is_new {
                left_out += 1;
                if left_out <= MAX_NAMED {
                    warn(tool, &unsound.why);
                }
            }
            false
        });
        if let Some(more @ 1..) = left_out.checked_sub(MAX_NAMED) {
            tracing::warn!(more, "leaving out more tools with an invalid x-mcp-header");
        }
    }
}

fn warn(tool: &Tool, why: &str) {
    let (tool, why) = (Logged(&tool.name), Logged(why));
    tracing::warn!(%tool, %why, "leaving out a tool with an invalid x-mcp-header");
}
