//! The messages of the extension, which both sides share.

use oxmcp::protocol::{CallToolParams, CallToolResult, EmptyResult, Method, Notification, Payload};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

pub const ID: &str = "com.example/tickets";
/// Another extension of the vendor, without which there is nobody to call the numbers.
pub const DESK: &str = "com.example/desk";
/// In the first revision nobody was asked anything.
pub const REVISION: &str = "2";
pub const RESULT_TYPE: &str = "ticket";
/// Subscriptions to numbers.
pub const LISTEN_KEY: &str = "com.example/tickets/numbers";
/// In the `_meta` of a tool whose calls may become tickets.
pub const TICKETED: &str = "com.example/ticketed";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Waiting,
    Asking,
    Served,
    Failed,
    Torn,
}

/// A ticket, as its holder sees it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ticket {
    pub number: u64,
    pub status: Status,
    /// How far the call is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// What the call asks: a request of the protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<CallToolResult>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Ticket {
    pub fn is_over(&self) -> bool {
        matches!(self.status, Status::Served | Status::Failed | Status::Torn)
    }
}

impl Payload for Ticket {}

#[derive(Debug, Serialize, Deserialize)]
pub struct Number {
    pub number: u64,
}

impl Payload for Number {}

#[derive(Debug, Serialize, Deserialize)]
pub struct Said {
    pub number: u64,
    pub answer: Value,
}

impl Payload for Said {}

/// The request for a ticket.
#[derive(Debug)]
pub struct Look;

impl Method for Look {
    const NAME: &'static str = "com.example/tickets/look";
    type Params = Number;
    type Result = Ticket;
}

/// The answer to what a ticket asks.
#[derive(Debug)]
pub struct Say;

impl Method for Say {
    const NAME: &'static str = "com.example/tickets/say";
    type Params = Said;
    type Result = EmptyResult;
}

/// The end of a ticket that nobody wants any more.
#[derive(Debug)]
pub struct Tear;

impl Method for Tear {
    const NAME: &'static str = "com.example/tickets/tear";
    type Params = Number;
    type Result = EmptyResult;
}

/// The news of a ticket, for those who listen.
#[derive(Debug)]
pub struct Called;

impl Notification for Called {
    const NAME: &'static str = "notifications/com.example/tickets/called";
    type Params = Ticket;
}

/// `tools/call`, where the answer may be a ticket.
#[derive(Debug)]
pub struct CallOrTicket;

impl Method for CallOrTicket {
    const NAME: &'static str = "tools/call";
    type Params = CallToolParams;
    type Result = Answer;
    const RESULT_TYPES: &'static [&'static str] = &[RESULT_TYPE];
}

/// What a call is answered with, as it came: an enum that serde tags could not hold structured content.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Answer(Box<RawValue>);

impl Payload for Answer {}

/// What is in an [`Answer`].
#[derive(Debug)]
pub enum Answered {
    Ticket(Ticket),
    Complete(CallToolResult),
}

impl Answer {
    pub fn read(&self) -> serde_json::Result<Answered> {
        #[derive(Deserialize)]
        struct Kind {
            #[serde(rename = "resultType", default)]
            result_type: String,
        }

        let text = self.0.get();
        let kind: Kind = serde_json::from_str(text)?;
        Ok(match &*kind.result_type {
            RESULT_TYPE => Answered::Ticket(Ticket::from_json(text)?),
            _ => Answered::Complete(CallToolResult::from_json(text)?),
        })
    }
}
