//! [`Timeout`], the longest time that a request may take.

use std::{
    collections::BTreeMap,
    task::{Context, Poll},
    time::Duration,
};

use oxmcp_protocol::CallToolResult;
use tokio::{select, time::sleep};
use tower_layer::Layer;
use tower_service::Service;

use super::counted::{LayerFuture, WORK, tool_of};
use crate::{
    debug::opaque_debug,
    error::{Error, Result},
    server::tool::{ToolCall, ToolResponse},
    session::{
        middleware::{Next, Request, Response},
        task::BoxFuture,
    },
};

/// A limit on the time that a request may take; a [middleware](crate::middleware).
///
/// It applies to calls of tools, prompts, resources and completions. When the time is over, the handler is dropped at its next
/// `await`, and the caller gets an error; layers around this one can detect it with [`is_timeout`](Error::is_timeout). The time
/// that a handler waits for an answer from the user counts (up to 2025-11-25), and so does the time that the layers inside
/// this one wait. A call that [became a task](crate::DetachableCall::detach) has been answered, and is not limited.
///
/// ```
/// use std::time::Duration;
/// use oxmcp::{Server, layers::Timeout};
///
/// let server = Server::new("reports", "1.0.0")
///     .layer(Timeout::new(Duration::from_secs(10)).tool("export", Duration::from_secs(120)));
/// # let _ = server;
/// ```
#[derive(Clone)]
pub struct Timeout {
    limit: Duration,
    tools: BTreeMap<String, Duration>,
}

impl Timeout {
    /// Creates a limit of this time.
    #[must_use]
    pub fn new(limit: Duration) -> Self {
        Self {
            limit,
            tools: BTreeMap::new(),
        }
    }

    /// Sets another limit for the calls of one tool.
    #[must_use]
    pub fn tool(mut self, name: impl Into<String>, limit: Duration) -> Self {
        self.tools.insert(name.into(), limit);
        self
    }

    /// Returns the limit as a layer of a [tool](crate::Tool::layer). A call that takes too long gets a result with an error, for
    /// the model.
    pub fn for_tool(
        &self,
    ) -> impl Fn(ToolCall) -> BoxFuture<Result<ToolResponse>> + Send + Sync + 'static + use<> {
        let limits = self.clone();
        move |call| {
            let limit = limits.of_tool(Some(call.tool()));
            let tool = call.tool().to_owned();
            Box::pin(async move {
                select! {
                    biased;
                    response = call.run() => response,
                    () = sleep(limit) => {
                        let why = exceeded(&tool, limit);
                        Ok(CallToolResult::error(why.message()).into())
                    }
                }
            })
        }
    }

    fn of_tool(&self, tool: Option<&str>) -> Duration {
        let own = tool.and_then(|tool| self.tools.get(tool));
        own.copied().unwrap_or(self.limit)
    }
}

fn exceeded(request: &str, limit: Duration) -> Error {
    Error::timeout(format!(
        "{request} took too long: the server stopped it after {limit:?}; ask for less at once"
    ))
}

impl Layer<Next> for Timeout {
    type Service = TimeoutService;

    fn layer(&self, next: Next) -> TimeoutService {
        TimeoutService {
            limits: self.clone(),
            next,
        }
    }
}

/// The service of a [`Timeout`].
#[derive(Clone)]
pub struct TimeoutService {
    limits: Timeout,
    next: Next,
}

impl Service<Request> for TimeoutService {
    type Response = Response;
    type Error = Error;
    type Future = LayerFuture;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> LayerFuture {
        if request.is_notification() || !WORK.contains(&request.method()) {
            return self.next.call(request);
        }
        let tool = tool_of(&request);
        let limit = self.limits.of_tool(tool.as_deref());
        let name = tool.unwrap_or_else(|| request.method().to_owned());
        let running = self.next.run(request);
        Box::pin(async move {
            select! {
                biased;
                response = running => response,
                () = sleep(limit) => Err(exceeded(&name, limit)),
            }
        })
    }
}

opaque_debug!(Timeout, |it| { limit: it.limit });
opaque_debug!(TimeoutService, |it| { limits: it.limits });
