//! [`Audit`], a record of each request: its caller, its arguments, and its end.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    fmt,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, SystemTime},
};

use oxmcp_json::Text;
use oxmcp_protocol::{
    ErrorCode, Implementation, Method, RequestId, Revision,
    internal::{ResultType, peek_result_type},
    method::{CallTool, GetPrompt, ReadResource, Subscribe},
};
use serde_json::Value;
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

use super::{
    counted::{LayerFuture, member_of},
    redaction::Redaction,
};
use crate::{
    debug::opaque_debug,
    error::{Error, Result},
    logged::{Logged, cut},
    server::registry::Feature,
    session::{
        connection::RequestContext,
        middleware::{Next, Request, Response},
    },
    transport::principal::Principal,
};

/// The number of characters of a name or a URI that are recorded.
const SHOWN: usize = 512;

type Sink = Arc<dyn Fn(AuditEntry) + Send + Sync>;

/// A record of each request, passed to a function when the request has ended; a [middleware](crate::middleware).
///
/// By default, tool calls, and requests for prompts, resources and subscriptions to resources are recorded. Each gets exactly
/// one entry, even if it is refused by a layer inside this one, is cancelled or times out. Arguments of tools are redacted by the
/// input schema: the value of a property with `"writeOnly": true` or `"format": "password"` becomes `[redacted]`, and so do all
/// values in the arguments of a tool that does not exist. Long arguments are cut.
///
/// The function is called on the task of the request, and must be quick.
///
/// ```
/// use oxmcp::{JsonSchema, Server, Tool, layers::Audit};
///
/// #[derive(serde::Deserialize, JsonSchema)]
/// struct Login { user: String, pin: String }
///
/// let login = Tool::new("log_in", "Log in", |Login { user, .. }: Login| async move { user })
///     .input(|s| s.property("pin", |p| p.format("password")));
/// let server = Server::new("bank", "1.0.0")
///     .layer(Audit::new(|entry| eprintln!("{entry}")).redact(["iban"]))
///     .tool(login);
/// # let _ = server;
/// ```
#[derive(Clone)]
pub struct Audit {
    sink: Sink,
    methods: BTreeSet<Cow<'static, str>>,
    redaction: Redaction,
}

/// The record of a request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AuditEntry {
    /// The authenticated caller.
    pub principal: Option<Principal>,
    /// The name and version of the client, as it declared them.
    pub client: Option<Implementation>,
    /// The method of the request.
    pub method: String,
    /// The name of the tool or prompt, or the URI of the resource, as the caller sent it.
    pub target: Option<String>,
    /// The arguments of a tool, redacted. `None` for other requests.
    pub arguments: Option<Value>,
    /// The ID of the request.
    pub request_id: Option<RequestId>,
    /// The revision in which the request was served.
    pub revision: Revision,
    /// The time at which the request began.
    pub began: SystemTime,
    /// The time that the request took.
    pub took: Duration,
    /// The end of the request.
    pub outcome: AuditOutcome,
}

/// The end of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuditOutcome {
    /// It has a result.
    Completed,
    /// It asks the client for input, and the client repeats it with the answers.
    InputRequired,
    /// The tool reported a failure.
    ToolError,
    /// It was refused because of a limit.
    Limited,
    /// It failed with an error.
    Failed {
        /// The code of the error.
        code: ErrorCode,
        /// The message of the error.
        message: String,
    },
    /// It was cancelled: by the client, by the end of its session, or because the runtime shut down.
    Cancelled,
    /// It took longer than the server allows.
    TimedOut,
}

impl Audit {
    /// Creates an audit whose entries are passed to `sink`.
    #[must_use]
    pub fn new(sink: impl Fn(AuditEntry) + Send + Sync + 'static) -> Self {
        let methods = [
            CallTool::NAME,
            GetPrompt::NAME,
            ReadResource::NAME,
            Subscribe::NAME,
        ];
        Self {
            sink: Arc::new(sink),
            methods: methods.into_iter().map(Cow::Borrowed).collect(),
            redaction: Redaction::default(),
        }
    }

    /// Creates an audit that logs its entries with `tracing`: at the level `info`, with the target `oxmcp::audit`.
    ///
    /// ```
    /// use oxmcp::{Server, layers::Audit};
    ///
    /// let server = Server::new("bank", "1.0.0").layer(Audit::log());
    /// # let _ = server;
    /// ```
    #[must_use]
    pub fn log() -> Self {
        Self::new(|entry| {
            let arguments = entry.arguments.as_ref().map(Value::to_string);
            tracing::info!(
                target: "oxmcp::audit",
                principal = entry.principal.as_ref().map(|it| tracing::field::display(Logged(it.as_str()))),
                client = entry.client.as_ref().map(|it| tracing::field::display(Logged(&it.name))),
                method = %Logged(&entry.method),
                target_name = entry.target.as_ref().map(|it| tracing::field::display(Logged(it))),
                arguments = arguments.map(|it| tracing::field::display(Logged(it))),
                took = ?entry.took,
                outcome = %entry.outcome,
                "request"
            );
        })
    }

    /// Records the requests with these methods.
    #[must_use]
    pub fn methods<N: Into<Cow<'static, str>>>(
        mut self,
        methods: impl IntoIterator<Item = N>,
    ) -> Self {
        self.methods = methods.into_iter().map(Into::into).collect();
        self
    }

    /// Redacts further properties by name, at any depth, ignoring case.
    #[must_use]
    pub fn redact<N: AsRef<str>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        let names = names.into_iter().map(|it| it.as_ref().to_lowercase());
        self.redaction.names.extend(names);
        self
    }

    fn begin(&self, request: &Request, cx: &RequestContext) -> Record {
        let method = request.method();
        let target = match method {
            CallTool::NAME | GetPrompt::NAME => member_of(request, "name"),
            _ => member_of(request, "uri"),
        };
        let arguments = match method {
            CallTool::NAME => Some(self.arguments(request, cx, target.as_deref())),
            _ => None,
        };
        let entry = AuditEntry {
            principal: cx.principal().cloned(),
            client: cx.peer_info().cloned(),
            method: cut(method, SHOWN).into_owned(),
            target: target.map(|it| cut(it, SHOWN).into_owned()),
            arguments,
            request_id: cx.request_id().cloned(),
            revision: cx.revision(),
            began: SystemTime::now(),
            took: Duration::ZERO,
            outcome: AuditOutcome::Cancelled,
        };
        Record {
            entry: Some(entry),
            start: Instant::now(),
            sink: Arc::clone(&self.sink),
        }
    }

    fn arguments(&self, request: &Request, cx: &RequestContext, tool: Option<&str>) -> Value {
        let params = request.raw_params().map_or(Text::EMPTY, Text::from);
        let sent = params.members().find(|(key, _)| key.is_str("arguments"));
        let sent = sent.and_then(|(_, value)| value.parse().ok());
        let sent = sent.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
        let features = cx.server().map(|server| server.features().clone()).ok();
        let tool = features.as_ref().zip(tool);
        let tool = tool.and_then(|(features, tool)| features.tools.get(tool, cx));
        let schema = tool.and_then(|tool| {
            let schema = &tool.definition().input_schema;
            serde_json::from_str(schema.get()).ok()
        });
        self.redaction.arguments(schema.as_ref(), &sent)
    }
}

/// The record of a request that has not ended. A request that is dropped counts as cancelled.
struct Record {
    entry: Option<AuditEntry>,
    start: Instant,
    sink: Sink,
}

impl Record {
    fn end(&mut self, outcome: AuditOutcome) {
        if let Some(mut entry) = self.entry.take() {
            entry.took = self.start.elapsed();
            entry.outcome = outcome;
            (self.sink)(entry);
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.end(AuditOutcome::Cancelled);
    }
}

impl AuditOutcome {
    fn of(method: &str, response: &Result<Response>) -> Self {
        match response {
            Ok(response) => {
                let json = Text::from(response.raw());
                let mut members = json.members();
                let is_failed = method == CallTool::NAME
                    && members.any(|(key, value)| key.is_str("isError") && value.get() == "true");
                match peek_result_type(json) {
                    _ if is_failed => Self::ToolError,
                    ResultType::InputRequired => Self::InputRequired,
                    ResultType::Complete | ResultType::Other => Self::Completed,
                }
            }
            Err(error) if error.is_cancelled() => Self::Cancelled,
            Err(error) if error.is_timeout() => Self::TimedOut,
            Err(error) if error.is_input_required() => Self::InputRequired,
            Err(error) if error.is_limit() => Self::Limited,
            Err(error) => Self::Failed {
                code: error.code(),
                message: error.message().to_owned(),
            },
        }
    }
}

impl fmt::Display for AuditOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Completed => f.write_str("completed"),
            Self::InputRequired => f.write_str("input required"),
            Self::ToolError => f.write_str("tool error"),
            Self::Limited => f.write_str("limited"),
            Self::Failed { code, message } => write!(f, "failed with {code}: {}", Logged(message)),
            Self::Cancelled => f.write_str("cancelled"),
            Self::TimedOut => f.write_str("timed out"),
        }
    }
}

/// Prints the entry in one line.
impl fmt::Display for AuditEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let principal = self
            .principal
            .as_ref()
            .map_or("anonymous", Principal::as_str);
        write!(f, "{} {}", Logged(principal), Logged(&self.method))?;
        if let Some(target) = &self.target {
            write!(f, " {}", Logged(target))?;
        }
        if let Some(arguments) = &self.arguments {
            write!(f, " {}", Logged(arguments))?;
        }
        write!(f, ": {} after {:?}", self.outcome, self.took)
    }
}

impl Layer<Next> for Audit {
    type Service = Audited;

    fn layer(&self, next: Next) -> Audited {
        Audited {
            audit: self.clone(),
            next,
        }
    }
}

/// The service of an [`Audit`].
#[derive(Clone)]
pub struct Audited {
    audit: Audit,
    next: Next,
}

impl Service<Request> for Audited {
    type Response = Response;
    type Error = Error;
    type Future = LayerFuture;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> LayerFuture {
        let cx = request.context().filter(|cx| cx.request_id().is_some());
        let cx = cx.filter(|_| self.audit.methods.contains(request.method()));
        let Some(cx) = cx else {
            return self.next.call(request);
        };
        let mut record = self.audit.begin(&request, cx);
        let method = request.method().to_owned();
        let running = self.next.run(request);
        Box::pin(async move {
            let response = running.await;
            record.end(AuditOutcome::of(&method, &response));
            response
        })
    }
}

opaque_debug!(Audit, |it| { methods: it.methods });
opaque_debug!(Audited, |it| { audit: it.audit });
