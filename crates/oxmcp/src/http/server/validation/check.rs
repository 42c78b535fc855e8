//! The ladder, as data.

use http::{StatusCode, request::Parts};

use super::{
    guard::{self, Policy},
    head,
    message::{self, Message},
    mirrored,
    refusal::Fault,
};
use crate::ErrorCode;

/// A step of the ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::http::server) enum Rung {
    Host,
    Origin,
    Verb,
    ContentType,
    Accept,
    Length,
    Json,
    Shape,
    Repeated,
    Ambiguous,
    Agreement,
    Version,
    Envelope,
    Method,
    MethodHeader,
    NameHeader,
    ParamHeaders,
}

/// What a step checks, and how who fails there is refused.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) rung: Rung,
    /// What must hold.
    pub(super) must: &'static str,
    pub(super) status: StatusCode,
    pub(super) code: ErrorCode,
    pub(super) check: Check,
}

pub(super) type Verdict = Result<(), Fault>;

/// What a step needs to know, and what it does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Check {
    /// Where a request comes from: for every endpoint and every method of HTTP.
    Guard(fn(&Policy, &Parts) -> Verdict),
    /// What the request is, before its body is read. The body may have so many bytes.
    Head(fn(usize, &Parts) -> Verdict),
    /// What the body is, which shows when it is parsed.
    Body,
    /// What the message says, and whether the headers say the same.
    Message(fn(&Message<'_>) -> Verdict),
    /// Whether the headers say what the arguments of the tool say, which takes the tool.
    Tool,
}

/// All steps. This is the order in which they are taken, since whoever climbs goes over this table.
pub(super) const RUNGS: &[Row] = &[
    Row {
        rung: Rung::Host,
        must: "`Host` is one of those that the endpoint is reached by",
        status: StatusCode::FORBIDDEN,
        code: ErrorCode::INVALID_REQUEST,
        check: Check::Guard(guard::host),
    },
    Row {
        rung: Rung::Origin,
        must: "`Origin`, which browsers send, is one of those that may come here",
        status: StatusCode::FORBIDDEN,
        code: ErrorCode::INVALID_REQUEST,
        check: Check::Guard(guard::origin),
    },
    Row {
        rung: Rung::Verb,
        must: "the method of HTTP is POST, or for sessions GET or DELETE",
        status: StatusCode::METHOD_NOT_ALLOWED,
        code: ErrorCode::INVALID_REQUEST,
        check: Check::Head(head::verb),
    },
    Row {
        rung: Rung::ContentType,
        must: "the body is JSON",
        status: StatusCode::UNSUPPORTED_MEDIA_TYPE,
        code: ErrorCode::INVALID_REQUEST,
        check: Check::Head(head::content_type),
    },
    Row {
        rung: Rung::Accept,
        must: "the client takes JSON and event streams",
        status: StatusCode::NOT_ACCEPTABLE,
        code: ErrorCode::INVALID_REQUEST,
        check: Check::Head(head::accept),
    },
    Row {
        rung: Rung::Length,
        must: "the body is not too long",
        status: StatusCode::PAYLOAD_TOO_LARGE,
        code: ErrorCode::INVALID_REQUEST,
        check: Check::Head(head::length),
    },
    Row {
        rung: Rung::Json,
        must: "the body can be parsed",
        status: StatusCode::BAD_REQUEST,
        code: ErrorCode::PARSE_ERROR,
        check: Check::Body,
    },
    Row {
        rung: Rung::Shape,
        must: "the body is a message that clients of its revision send",
        status: StatusCode::BAD_REQUEST,
        code: ErrorCode::INVALID_REQUEST,
        check: Check::Message(message::shape),
    },
    Row {
        rung: Rung::Repeated,
        must: "no header by which messages are routed stands there twice",
        status: StatusCode::BAD_REQUEST,
        code: ErrorCode::HEADER_MISMATCH,
        check: Check::Message(message::repeated),
    },
    Row {
        rung: Rung::Ambiguous,
        must: "the params can be read in one way only",
        status: StatusCode::BAD_REQUEST,
        code: ErrorCode::INVALID_PARAMS,
        check: Check::Message(message::ambiguous),
    },
    Row {
        rung: Rung::Agreement,
        must: "`MCP-Protocol-Version` names the revision that the message names",
        status: StatusCode::BAD_REQUEST,
        code: ErrorCode::HEADER_MISMATCH,
        check: Check::Message(message::agreement),
    },
    Row {
        rung: Rung::Version,
        must: "the revision is served",
        status: StatusCode::BAD_REQUEST,
        code: ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
        check: Check::Message(message::version),
    },
    Row {
        rung: Rung::Envelope,
        must: "a modern request says all that it must",
        status: StatusCode::BAD_REQUEST,
        code: ErrorCode::INVALID_PARAMS,
        check: Check::Message(message::envelope),
    },
    Row {
        rung: Rung::Method,
        must: "the revision has the method",
        status: StatusCode::NOT_FOUND,
        code: ErrorCode::METHOD_NOT_FOUND,
        check: Check::Message(message::method),
    },
    Row {
        rung: Rung::MethodHeader,
        must: "`Mcp-Method` repeats the method",
        status: StatusCode::BAD_REQUEST,
        code: ErrorCode::HEADER_MISMATCH,
        check: Check::Message(mirrored::method),
    },
    Row {
        rung: Rung::NameHeader,
        must: "`Mcp-Name`, and what extensions have beside it, repeats what the params name",
        status: StatusCode::BAD_REQUEST,
        code: ErrorCode::HEADER_MISMATCH,
        check: Check::Message(mirrored::name),
    },
    Row {
        rung: Rung::ParamHeaders,
        must: "the `Mcp-Param-` headers of a tool repeat its arguments",
        status: StatusCode::BAD_REQUEST,
        code: ErrorCode::HEADER_MISMATCH,
        check: Check::Tool,
    },
];

impl Rung {
    /// What is known of the step.
    pub(super) fn row(self) -> &'static Row {
        let mut rows = RUNGS.iter();
        rows.find(|row| row.rung == self)
            .expect("every step has its row")
    }
}
