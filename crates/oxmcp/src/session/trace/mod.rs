//! Traces: a span of [`tracing`] for each request, in both directions, and how a trace goes on at the peer.
//!
//! Each request that is made is a span `mcp.client.request`, until it is answered; each that is served is a span
//! `mcp.server.request`, in which its handler runs. Either side can be either: servers make requests to legacy clients. Both are of
//! the level `info`, have the target `oxmcp::session::trace::span`, and the fields of OpenTelemetry's
//! [conventions for MCP](https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp/):
//!
//! | field | what it is |
//! |---|---|
//! | `otel.name` | the method, and the tool or prompt: `tools/call add` |
//! | `otel.kind` | `client` or `server` |
//! | `mcp.method.name` | the method |
//! | `mcp.protocol.version` | the revision in which the request is made |
//! | `jsonrpc.request.id` | its id |
//! | `gen_ai.tool.name`, `gen_ai.prompt.name`, `mcp.resource.uri` | what it names |
//! | `gen_ai.operation.name` | `execute_tool`, for a call of a tool |
//! | `traceparent` | where the trace of the caller goes on, as its `_meta` says; of requests that are served |
//! | `error.type` | how it failed: the code of the error, `tool_error` for a result that says so, and without an answer `timeout`, `cancelled`, `closed`, `network` or `_OTHER` |
//! | `rpc.response.status_code` | the code of the error that was the answer |
//! | `otel.status_code` | `ERROR`, where it failed |
//!
//! What a peer may write at any length is cut: ids after 64 characters, names after 256, URIs after 1024.
//!
//! Left out of what the conventions have are the messages of errors, which may quote arguments; the ids of sessions, which are all
//! that one must know to use them; and the network, which is below.
//!
//! # One trace on both sides
//!
//! `tracing` knows no trace beyond its process. A [`Propagator`] does: it turns the span of a request that is made into a
//! [`TraceContext`], which goes along in `_meta` (`traceparent`, `tracestate`, `baggage`, in every revision) and over HTTP in the
//! headers of these names, too, for what is in between; and it makes what arrives the parent of the span of a request that is served.
//! The crate `oxmcp-opentelemetry` has the one for OpenTelemetry. Without one nothing is sent, and what arrives is a field.
//!
//! What `_meta` says goes before the headers of HTTP, and both go before the span around, which the new span
//! [follows from](tracing::Span::follows_from) then. A span around that is of the trace of the headers is that of a middleware in
//! front of the endpoint, and stays the parent. What is malformed is ignored, and never sent. A `traceparent` that a
//! caller has set by hand is sent as it is. A baggage is joined by its members, of which the nearer goes before the farther of the
//! same name: what a caller has set by hand before that of its span, `_meta` before the headers, and these before the span around.
//!
//! See [trace context](https://modelcontextprotocol.io/specification/2026-07-28/basic#meta).

// The files of this room:
//
// | `propagator` | the trait, and the propagator of this process |
// | `span` | the spans of requests, made and served |

pub(crate) mod propagator;
pub(crate) mod span;

pub use oxmcp_protocol::TraceContext;
pub use propagator::{Propagator, set_propagator};
