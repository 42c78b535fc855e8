//! Requests for the tests of validation, and the checks that they fail.

use http::{Request, request::Parts};
use oxmcp_protocol::internal::{Envelope, Era, Params, RequestParams};
use serde_json::{Value, json};

use super::super::*;
use crate::server::{Server, Tool};

/// The maximum length of a body.
pub(crate) const LIMIT: usize = 4 << 20;

/// A request over HTTP.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) verb: &'static str,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Sent {
    /// A POST to this machine, with the headers that every client sends.
    pub(crate) fn post(body: &(impl ToString + ?Sized)) -> Self {
        let mut sent = Self {
            verb: "POST",
            headers: Vec::new(),
            body: body.to_string(),
        };
        sent.set("host", "localhost:8080");
        sent.set("content-type", "application/json");
        sent.set("accept", "application/json, text/event-stream");
        sent
    }

    /// A modern request, with all its required parts.
    pub(crate) fn modern(method: &str, mut params: Value) -> Self {
        params["_meta"] = meta("2026-07-28");
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let sent = Self::post(&body).with("mcp-protocol-version", "2026-07-28");
        sent.with("mcp-method", method)
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.set(name, value);
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(it, _)| it != name);
        self
    }

    /// Replaces a header.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.headers.retain(|(it, _)| it != name);
        self.headers.push((name.into(), value.into()));
    }

    pub(crate) fn parts(&self) -> Parts {
        let mut request = Request::builder().method(self.verb).uri("/mcp");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request.body(()).unwrap().into_parts().0
    }

    /// Makes all checks, at the endpoint of a server.
    pub(crate) fn validate_at(&self, server: &Server) -> Result<Era, Refusal> {
        let parts = self.parts();
        check_access(&Policy::default(), &parts)?;
        check_head(LIMIT, &parts)?;
        let mut params = RequestParams::UNREAD;
        let envelope = Envelope::parse(self.body.as_bytes(), &mut params);
        let envelope = envelope.map_err(|malformed| Refusal::malformed(&malformed))?;
        let features = server.features();
        let validated = check_message(&features, Message::new(&parts.headers, &envelope))?;
        Ok(validated.era)
    }

    pub(crate) fn validate(&self) -> Result<Era, Refusal> {
        self.validate_at(&server())
    }

    /// Asserts that the request fails this check, with this status and code.
    #[track_caller]
    pub(crate) fn fails(&self, check: Check, status: u16, code: i64) -> Refusal {
        let refusal = self.validate().unwrap_err();
        assert_eq!(
            (
                refusal.check,
                refusal.check.status().as_u16(),
                refusal.error.code.value()
            ),
            (check, status, code),
            "{self:?}: {}",
            refusal.error.message
        );
        refusal
    }
}

pub(crate) fn meta(version: &str) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// A server that serves every revision, and has a tool whose argument `region` is mirrored in a header.
pub(crate) fn server() -> Server {
    let region = json!({"type": "string", "x-mcp-header": "Region"});
    let schema = json!({"type": "object", "properties": {"region": region}});
    let tool = Tool::dynamic("move", "Move it", schema, |_, _| async { Ok("moved") });
    Server::new("mover", "1.0.0").tool(tool)
}
