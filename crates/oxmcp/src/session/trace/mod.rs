//! Tracing: a [`tracing`] span for each request, in both directions, and the propagation of traces to the peer.
//!
//! Each outgoing request has a span `mcp.client.request`, until it is answered. Each incoming request has a span
//! `mcp.server.request`, in which its handler runs. Both roles can have both, because servers make requests to legacy clients.
//! The spans have the level `info`, the target `oxmcp::session::trace::span`, and the fields of OpenTelemetry's [conventions
//! for MCP](https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp/):
//!
//! | field | content |
//! |---|---|
//! | `otel.name` | the method, and the tool or prompt: `tools/call add` |
//! | `otel.kind` | `client` or `server` |
//! | `mcp.method.name` | the method |
//! | `mcp.protocol.version` | the revision in which the request is made |
//! | `jsonrpc.request.id` | the ID of the request |
//! | `gen_ai.tool.name`, `gen_ai.prompt.name`, `mcp.resource.uri` | the target of the request |
//! | `gen_ai.operation.name` | `execute_tool`, for a call of a tool |
//! | `traceparent` | the caller's `traceparent` in `_meta`; of incoming requests |
//! | `error.type` | how it failed: the code of the error, `tool_error` for a result that says so, and without an answer `timeout`, `cancelled`, `closed`, `network` or `_OTHER` |
//! | `rpc.response.status_code` | the code of the error that was the answer |
//! | `otel.status_code` | `ERROR`, if the request failed |
//!
//! Values from a peer are truncated: IDs after 64 characters, names after 256, URIs after 1024.
//!
//! The spans omit some fields of the conventions: error messages, which may quote arguments; session IDs, which are enough to
//! use a session; and the network, which belongs to the layer below.
//!
//! # One trace on both sides
//!
//! `tracing` has no traces across processes. A [`Propagator`] adds them. It turns the span of an outgoing request into a
//! [`TraceContext`], which is sent in `_meta` (`traceparent`, `tracestate`, `baggage`, in every revision) and over HTTP also in
//! the headers of these names, for intermediaries. It makes a received context the parent of the span of an incoming request.
//! The crate `oxmcp-opentelemetry` has the propagator for OpenTelemetry. Without a propagator nothing is sent, and a received
//! context is only a field.
//!
//! `_meta` takes precedence over the HTTP headers, and both over the current span, which the new span then [follows
//! from](tracing::Span::follows_from). A current span that belongs to the trace of the headers comes from a middleware in front
//! of the endpoint, and stays the parent. Malformed values are ignored, and never sent. A `traceparent` that a caller has set
//! by hand is sent unchanged. Baggage is merged by its members. If two have the same name, the nearer one wins: one set by the
//! caller over that of its span, `_meta` over the headers, and the headers over the current span.
//!
//! See [trace context](https://modelcontextprotocol.io/specification/2026-07-28/basic#meta).

pub(crate) mod propagator;
pub(crate) mod span;

pub use oxmcp_protocol::TraceContext;
pub use propagator::{Propagator, set_propagator};
