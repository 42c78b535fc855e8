//! The messages of the extension, which both sides share.

use oxmcp::protocol::{CallToolParams, CallToolResult, EmptyResult, Method, Notification, Payload};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

pub const ID: &str = "com.example/tickets";
/// The identifier of another extension of the vendor, which this extension requires.
pub const DESK: &str = "com.example/desk";
/// The revision of the extension. The first revision had no questions.
pub const REVISION: &str = "2";
pub const RESULT_TYPE: &str = "ticket";
/// The key in the filter of a subscription: the numbers of the tickets to follow.
pub const LISTEN_KEY: &str = "com.example/tickets/numbers";
/// The key in the `_meta` of a tool whose calls may become tickets.
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

/// A ticket, as its client sees it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ticket {
    pub number: u64,
    pub status: Status,
    /// The latest progress of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The call's open question: a request of the protocol.
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

/// The method that returns a ticket.
#[derive(Debug)]
pub struct Look;

impl Method for Look {
    const NAME: &'static str = "com.example/tickets/look";
    type Params = Number;
    type Result = Ticket;
}

/// The method that answers a ticket's question.
#[derive(Debug)]
pub struct Say;

impl Method for Say {
    const NAME: &'static str = "com.example/tickets/say";
    type Params = Said;
    type Result = EmptyResult;
}

/// The method that cancels a ticket.
#[derive(Debug)]
pub struct Tear;

impl Method for Tear {
    const NAME: &'static str = "com.example/tickets/tear";
    type Params = Number;
    type Result = EmptyResult;
}

/// The notification of a ticket's changes, for subscribers.
#[derive(Debug)]
pub struct Called;

impl Notification for Called {
    const NAME: &'static str = "notifications/com.example/tickets/called";
    type Params = Ticket;
}

/// `tools/call` with an answer that may be a ticket.
#[derive(Debug)]
pub struct CallOrTicket;

impl Method for CallOrTicket {
    const NAME: &'static str = "tools/call";
    type Params = CallToolParams;
    type Result = Answer;
    const RESULT_TYPES: &'static [&'static str] = &[RESULT_TYPE];
}

/// The answer to a call, as received: an enum that serde tags could not hold structured content.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Answer(Box<RawValue>);

impl Payload for Answer {}

/// The contents of an [`Answer`].
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
