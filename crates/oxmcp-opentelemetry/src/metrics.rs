//! [`Metrics`], the durations of requests and sessions.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use opentelemetry::{
    KeyValue, global,
    metrics::{Histogram, Meter},
};
use oxmcp::{
    Error, ErrorCode, Result,
    middleware::{self, MiddlewareLayer, Next, Request, Response},
    protocol::method,
};
use serde::Deserialize;
use tokio::time::Instant;

/// The boundaries of the buckets that the conventions recommend, in seconds.
const BOUNDARIES: [f64; 14] = [
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
];

/// The number of tools and prompts that are told apart: names come from peers, and each makes a time series.
const MAX_NAMES: usize = 1000;

/// The value of an attribute that is not told apart.
const OTHER: &str = "_OTHER";

/// The metrics of OpenTelemetry's [conventions for MCP](https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp/#metrics): the durations of
/// requests and sessions, as histograms in seconds.
///
/// | metric | recorded by |
/// |---|---|
/// | `mcp.server.operation.duration` | [`incoming`](Self::incoming) |
/// | `mcp.client.operation.duration` | [`outgoing`](Self::outgoing) |
/// | `mcp.server.session.duration` | [`incoming`](Self::incoming) of servers, for sessions that `initialize` opens |
/// | `mcp.client.session.duration` | [`client_session`](Self::client_session) |
///
/// The attributes are `mcp.method.name`, `gen_ai.tool.name`, `gen_ai.prompt.name`, `gen_ai.operation.name`,
/// `mcp.protocol.version` (of servers), `error.type` and `rpc.response.status_code`. A failed tool has the `error.type`
/// `tool_error`; a request without a response `cancelled` or `timeout`. Of the names that peers choose freely, unknown methods and
/// tools are not recorded.
///
/// ```
/// use oxmcp::{Client, Server};
/// use oxmcp_opentelemetry::Metrics;
///
/// // With the meter provider of the program, which is set before:
/// // opentelemetry::global::set_meter_provider(provider);
/// let metrics = Metrics::new();
/// let server = Server::new("calculator", "1.0.0").layer(metrics.incoming());
/// let client = Client::new("my-app", "1.0.0").outgoing_layer(metrics.outgoing());
/// # let _ = (server, client);
/// ```
#[derive(Clone)]
pub struct Metrics(Arc<Instruments>);

struct Instruments {
    server_operation: Histogram<f64>,
    client_operation: Histogram<f64>,
    server_session: Histogram<f64>,
    client_session: Histogram<f64>,
    /// The names of tools and prompts that have been seen to exist.
    names: Mutex<BTreeSet<String>>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Creates the instruments with the global meter provider. Set it before.
    #[must_use]
    pub fn new() -> Self {
        Self::with_meter(&global::meter("oxmcp"))
    }

    /// Creates the instruments with a meter.
    #[must_use]
    pub fn with_meter(meter: &Meter) -> Self {
        let histogram = |name: &'static str, description: &'static str| {
            let histogram = meter.f64_histogram(name).with_unit("s");
            let histogram = histogram.with_description(description);
            histogram.with_boundaries(BOUNDARIES.to_vec()).build()
        };
        Self(Arc::new(Instruments {
            server_operation: histogram(
                "mcp.server.operation.duration",
                "The duration of a request, as observed by its receiver",
            ),
            client_operation: histogram(
                "mcp.client.operation.duration",
                "The duration of a request, as observed by its sender",
            ),
            server_session: histogram(
                "mcp.server.session.duration",
                "The duration of a session, as observed by the server",
            ),
            client_session: histogram(
                "mcp.client.session.duration",
                "The duration of a session, as observed by the client",
            ),
            names: Mutex::default(),
        }))
    }

    /// Returns the middleware for incoming requests: for [`Server::layer`](oxmcp::Server::layer), and for
    /// [`Client::layer`](oxmcp::Client::layer), to which servers send questions. Add it first, so that it times the other layers, too.
    #[must_use]
    pub fn incoming(&self) -> impl MiddlewareLayer + use<> {
        let metrics = self.clone();
        middleware::from_fn(move |request: Request, next: Next| {
            let metrics = metrics.clone();
            async move { metrics.serve(request, next).await }
        })
    }

    /// Returns the middleware for outgoing requests: for [`Client::outgoing_layer`](oxmcp::Client::outgoing_layer), and for
    /// [`Server::outgoing_layer`](oxmcp::Server::outgoing_layer), whose handlers ask clients.
    #[must_use]
    pub fn outgoing(&self) -> impl MiddlewareLayer + use<> {
        let metrics = self.clone();
        middleware::from_fn(move |request: Request, next: Next| {
            let metrics = metrics.clone();
            async move {
                if request.is_notification() {
                    return next.run(request).await;
                }
                let operation = metrics.begin(&request, false);
                let response = next.run(request).await;
                operation.end(&response);
                response
            }
        })
    }

    /// Begins to time a session of a client, until the returned timer is dropped. Keep it next to the session.
    ///
    /// ```
    /// # async fn run(client: oxmcp::Client, metrics: oxmcp_opentelemetry::Metrics) -> oxmcp::Result<()> {
    /// let session = client.connect(oxmcp::Command::new("calculator")).await?;
    /// let timer = metrics.client_session();
    /// // … the session is used …
    /// session.close().await?;
    /// drop(timer);
    /// # Ok(()) }
    /// ```
    #[must_use = "the session is timed until this is dropped"]
    pub fn client_session(&self) -> SessionTimer {
        SessionTimer {
            metrics: self.clone(),
            start: Instant::now(),
            is_server: false,
            attributes: Vec::new(),
        }
    }

    async fn serve(self, request: Request, next: Next) -> Result<Response> {
        let context = request.context().cloned();
        let Some(context) = context.filter(|_| !request.is_notification()) else {
            return next.run(request).await;
        };
        let is_opening = request.method() == "initialize";
        let operation = self.begin(&request, true);
        let response = next.run(request).await;
        operation.end(&response);
        if is_opening
            && response.is_ok()
            && let Some(session) = context.server_session()
        {
            let mut timer = SessionTimer {
                metrics: self,
                start: Instant::now(),
                is_server: true,
                attributes: Vec::new(),
            };
            if let Some(revision) = session.revision() {
                let version = KeyValue::new("mcp.protocol.version", revision.as_str());
                timer.attributes.push(version);
            }
            tokio::spawn(async move {
                if session.wait().await.is_err() {
                    timer.fail(OTHER);
                }
            });
        }
        response
    }

    fn begin(&self, request: &Request, is_incoming: bool) -> Operation {
        let table = match is_incoming {
            true => [method::REQUESTS_TO_SERVER, method::REQUESTS_TO_CLIENT],
            false => [method::REQUESTS_TO_CLIENT, method::REQUESTS_TO_SERVER],
        };
        let known = table
            .into_iter()
            .find_map(|table| method::find(table, request.method()));
        let method = known.map_or(OTHER, |row| row.name);
        let mut attributes = vec![KeyValue::new("mcp.method.name", method)];
        if let Some(context) = request.context() {
            let version = context.revision().as_str();
            attributes.push(KeyValue::new("mcp.protocol.version", version));
        }
        let subject = match method {
            "tools/call" => {
                attributes.push(KeyValue::new("gen_ai.operation.name", "execute_tool"));
                Some("gen_ai.tool.name")
            }
            "prompts/get" => Some("gen_ai.prompt.name"),
            _ => None,
        };
        #[derive(Deserialize)]
        struct Named {
            name: String,
        }
        let subject = subject.and_then(|key| {
            let named: Named = request.params().ok()?;
            Some((key, named.name))
        });
        Operation {
            metrics: self.clone(),
            start: Instant::now(),
            is_incoming,
            is_call: method == "tools/call",
            attributes,
            subject,
            is_ended: false,
        }
    }

    /// A name to record. Names that may not exist, because the peer has chosen them, are recorded only once they are known.
    fn name(&self, name: String, exists: bool) -> String {
        let mut names = self.0.names.lock().unwrap_or_else(PoisonError::into_inner);
        if names.contains(&name) {
            return name;
        }
        if !exists || names.len() >= MAX_NAMES {
            return OTHER.to_owned();
        }
        names.insert(name.clone());
        name
    }
}

/// A request that is timed. If it is dropped before its end, it counts as cancelled.
struct Operation {
    metrics: Metrics,
    start: Instant,
    is_incoming: bool,
    is_call: bool,
    attributes: Vec<KeyValue>,
    /// The attribute for the name of the tool or prompt, and the name.
    subject: Option<(&'static str, String)>,
    is_ended: bool,
}

impl Operation {
    fn end(mut self, response: &Result<Response>) {
        self.is_ended = true;
        match response {
            Ok(response) => {
                #[derive(Deserialize)]
                struct Failure {
                    #[serde(rename = "isError", default)]
                    is_error: bool,
                }
                let failure = response.result::<Failure>();
                let is_failed = self.is_call && failure.is_ok_and(|it| it.is_error);
                self.record(is_failed.then_some("tool_error"), None, true);
            }
            Err(error) => {
                let code = error.code().value().to_string();
                // An unknown name, or one that a limit has refused before it was looked up.
                let exists = error.code() != ErrorCode::INVALID_PARAMS && !error.is_limit();
                match kind(error) {
                    Some(kind) => self.record(Some(kind), None, exists),
                    None => self.record(Some(&code), Some(&code), exists),
                }
            }
        }
    }

    fn record(&mut self, error_type: Option<&str>, code: Option<&str>, exists: bool) {
        let mut attributes = std::mem::take(&mut self.attributes);
        if let Some((key, name)) = self.subject.take() {
            attributes.push(KeyValue::new(key, self.metrics.name(name, exists)));
        }
        let error_type = error_type.map(|it| KeyValue::new("error.type", it.to_owned()));
        let code = code.map(|it| KeyValue::new("rpc.response.status_code", it.to_owned()));
        attributes.extend(error_type.into_iter().chain(code));
        let instruments = &self.metrics.0;
        let histogram = match self.is_incoming {
            true => &instruments.server_operation,
            false => &instruments.client_operation,
        };
        histogram.record(self.start.elapsed().as_secs_f64(), &attributes);
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        if !self.is_ended {
            self.record(Some("cancelled"), None, false);
        }
    }
}

/// The `error.type` of an error that is not an error response.
fn kind(error: &Error) -> Option<&'static str> {
    match error {
        _ if error.is_timeout() => Some("timeout"),
        _ if error.is_cancelled() => Some("cancelled"),
        _ if error.is_closed() => Some("closed"),
        _ if error.is_network() => Some("network"),
        _ => None,
    }
}

/// The timer of a session, which records its duration when it is dropped; see [`Metrics::client_session`].
pub struct SessionTimer {
    metrics: Metrics,
    start: Instant,
    is_server: bool,
    attributes: Vec<KeyValue>,
}

impl SessionTimer {
    /// Records that the session has failed, with a low-cardinality description of the failure.
    pub fn fail(&mut self, error_type: &'static str) {
        self.attributes
            .push(KeyValue::new("error.type", error_type));
    }
}

impl Drop for SessionTimer {
    fn drop(&mut self) {
        let instruments = &self.metrics.0;
        let histogram = match self.is_server {
            true => &instruments.server_session,
            false => &instruments.client_session,
        };
        histogram.record(self.start.elapsed().as_secs_f64(), &self.attributes);
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl fmt::Debug for SessionTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionTimer").finish_non_exhaustive()
    }
}
