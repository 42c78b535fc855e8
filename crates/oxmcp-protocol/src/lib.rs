//! The [Model Context Protocol](https://modelcontextprotocol.io) (MCP) without I/O: messages, the types of every
//! revision, and the differences between revisions.
//!
//! The crate performs no I/O: it uses no runtime, no sockets and no clock, and builds for WebAssembly. The SDK for
//! servers and clients is the crate `oxmcp`, which is built on this one.
//!
//! | | |
//! |---|---|
//! | [`types`] | the types of the protocol, one file per page of the specification; also re-exported at the crate root |
//! | [`message`] | messages for gateways: parse, inspect, change, fit to another revision, write |
//! | [`method`] | the methods: a type for each, and the table of the revisions that have them |
//! | [`revision`] | the revisions of the protocol |
//! | [`lenient`] | reading messages that deviate from the specification |
//! | [`framing`] | decoders from byte streams to messages: lines and server-sent events |
//! | [`http_headers`] | HTTP headers that mirror parts of a message |
//! | [`uri_template`] | RFC 6570 templates: expansion and matching |

#![cfg_attr(docsrs, feature(doc_cfg))]

mod error;
pub mod framing;
pub mod http_headers;
mod jsonrpc;
pub mod lenient;
pub mod message;
mod meta;
mod mrtr;
mod result;
pub mod revision;
pub mod types;
mod uri;
pub mod uri_template;
mod values;

pub use error::{EncodeError, TemplateError};
pub use jsonrpc::{
    error::{ErrorCode, ErrorObject},
    id::RequestId,
};
pub use revision::Revision;
#[doc(inline)]
pub use revision::method;
pub use types::*;

/// Items for the SDK only: they can change with any release.
#[doc(hidden)]
pub mod internal {
    pub use crate::{
        jsonrpc::{
            answered_ids::answered_ids,
            envelope::{Envelope, Malformed, Params, RawNotification, RawRequest, RawResponse},
            write::{ExtraMeta, write_error, write_notification, write_request, write_response},
        },
        meta::has_meta::HasMeta,
        meta::request::{Era, RequestMeta, RequestParams, unsupported_version},
        mrtr::checks::mend_unchecked_answer,
        mrtr::requests::{RawInputRequest, RawInputRequired, with_input_responses},
        result::{
            encode::{ResultType, encode_result, into_text, peek_result_type},
            payload::{encode_payload, has_result_type},
            tool_index::ResultIndex,
        },
        revision::projection::project::{Project, project_error},
        types::{
            caching::{Freshness, peek_freshness},
            progress::write_progress,
            resources::uri_covers,
        },
    };

    /// Negotiation of the revision with a server.
    pub mod negotiation {
        pub use crate::revision::negotiation::{
            ProbeFailure, ProbeOutcome, is_answer, on_discovered, on_error, on_refused,
        };
    }

    /// The rules of URIs.
    pub mod uri {
        pub use crate::uri::{
            check_absolute, check_scheme, decode, encode, is_reserved, is_unreserved, normalized,
        };
    }
}

/// The code in README.md is tested as documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
