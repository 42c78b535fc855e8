//! What the tools of a server want repeated in the headers of their calls, where the transport has headers.
//!
//! See [custom headers](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#custom-headers-from-tool-parameters).

use std::{
    any::Any,
    future::pending,
    sync::atomic::{AtomicU64, Ordering},
};

use tokio::{
    select,
    sync::Mutex,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::{
    client::{cache::options::CacheMode, requests::exchange::Ready, session::ClientSession},
    error::{Error, Result},
    json::Logged,
    jsonrpc::ErrorCode,
    protocol::{ListToolsResult, Method, Payload, Tool},
    session::{CallResult, after},
    transport::Mirror,
};

/// How many tools of a page are named in the log.
const MAX_TOLD: usize = 8;

/// What a session does for its transport's mirror, where there is one.
#[derive(Debug)]
pub(crate) struct Mirrored {
    mirror: Option<Mirror>,
    /// Held by whoever lists the tools because a call was refused: all who wait for it have the use of it.
    listing: Mutex<()>,
    /// How many times they were listed for that.
    listed: AtomicU64,
}

impl Mirrored {
    pub(crate) fn new(mirror: Option<Mirror>) -> Self {
        Self {
            mirror,
            listing: Mutex::default(),
            listed: AtomicU64::new(0),
        }
    }

    /// How many times the tools were listed because a call was refused.
    pub(crate) fn listed(&self) -> u64 {
        self.listed.load(Ordering::Relaxed)
    }

    /// Whether a call of a tool that failed with this may do better once the tools were listed anew.
    pub(crate) fn is_mismatch(&self, error: &Error) -> bool {
        self.mirror.is_some() && error.is_protocol() && error.code() == ErrorCode::HEADER_MISMATCH
    }

    /// Looks at a result: from a list of tools it learns what they want mirrored, and leaves out those that want what
    /// cannot be.
    pub(crate) fn screen<T: 'static>(&self, result: &mut T) {
        let Some(mirror) = &self.mirror else {
            return;
        };
        let result: &mut dyn Any = result;
        let Some(page) = result.downcast_mut::<ListToolsResult>() else {
            return;
        };
        let mut left_out = 0_usize;
        page.tools.retain(|tool| {
            let Err(unsound) = mirror.learn(tool) else {
                return true;
            };
            if unsound.is_new {
                left_out += 1;
                if left_out <= MAX_TOLD {
                    tell(tool, &unsound.why);
                }
            }
            false
        });
        if let Some(more @ 1..) = left_out.checked_sub(MAX_TOLD) {
            tracing::warn!(more, "more tools are left out of the list for that");
        }
    }
}

fn tell(tool: &Tool, why: &str) {
    let (tool, why) = (Logged(&tool.name), Logged(why));
    tracing::warn!(%tool, %why, "a tool is left out of the list, because its x-mcp-header is wrong");
}

impl<P: Payload> Ready<P> {
    /// Makes a call of a tool once more, which the server has refused because headers did not fit: the tool may want
    /// others now. `listed` says how often tools had been listed when the call was made.
    pub(crate) async fn exchange_anew<M: Method<Params = P>>(
        &mut self,
        refused: Error,
        listed: u64,
    ) -> Result<CallResult> {
        let params = self.params.to_json()?;
        let Some(name) = tool_name(&params) else {
            return Err(refused);
        };
        let begun = self.options.start.unwrap_or_else(Instant::now);
        let limit = self.options.timeout.min(self.options.max_total);
        let worth = select! {
            biased;
            () = cancelled(self.options.cancel.clone()) => {
                return Err(Error::cancelled(format!("the call of {} was cancelled", M::NAME)));
            }
            worth = list_anew(&self.session, &name, listed) => worth,
            () = sleep_until(after(begun, limit)) => false,
        };
        if !worth {
            return Err(refused);
        }
        let options = &mut self.options;
        options.max_total = options.max_total.saturating_sub(begun.elapsed());
        options.timeout = options.timeout.min(options.max_total);
        self.exchange_once::<M>().await
    }
}

/// Lists the tools, so that it is known what they want mirrored. Returns whether that can have changed the headers of a
/// call.
async fn list_anew(session: &ClientSession, name: &str, listed: u64) -> bool {
    let mirrored = session.peer().mirrored();
    let Some(mirror) = &mirrored.mirror else {
        return false;
    };
    let _one_at_a_time = mirrored.listing.lock().await;
    if mirrored.listed() != listed {
        // Somebody else was first, and after the call was made.
        return true;
    }
    let before = mirror.knows(name);
    let all = session.tools().cache(CacheMode::Refresh).all().await;
    let tools = match all {
        Ok(tools) => tools,
        Err(error) => {
            tracing::debug!(error = %Logged(&error), "the tools could not be listed to find out which headers a call needs");
            return false;
        }
    };
    mirrored.listed.fetch_add(1, Ordering::Relaxed);
    // Where there are more tools than are remembered, it is this one that counts.
    let tool = tools.iter().find(|tool| tool.name == name);
    tool.is_some_and(|tool| mirror.learn(tool).is_ok()) && (before || mirror.knows(name))
}

async fn cancelled(token: Option<CancellationToken>) {
    match token {
        Some(token) => token.cancelled().await,
        None => pending().await,
    }
}

/// The name of the tool that is called.
fn tool_name(params: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Named {
        name: String,
    }
    let named: Named = serde_json::from_slice(params).ok()?;
    Some(named.name)
}
