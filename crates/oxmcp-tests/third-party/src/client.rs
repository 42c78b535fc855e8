//! The client's side: a call that is awaited, whether it becomes a ticket or not.

use oxmcp::{
    ClientSession, Error, Extension, Result, Revision, SubscriptionEvent,
    protocol::{CallToolParams, CallToolResult, Notification, Payload, SubscriptionFilter},
};
use serde_json::{Value, json};

use crate::wire::{
    Answered, CallOrTicket, Called, ID, LISTEN_KEY, Look, Number, RESULT_TYPE, REVISION, Said, Say,
    Status, Tear, Ticket,
};

/// The extension, for [`Client::extension`](oxmcp::Client::extension).
pub fn extension() -> Extension {
    let modern = Revision::LATEST..;
    Extension::new(ID)
        .revision(REVISION)
        .result_type(RESULT_TYPE)
        .calls::<Look>(modern.clone())
        .calls::<Say>(modern.clone())
        .calls::<Tear>(modern)
}

/// Calls a tool. If the answer is a ticket, waits until the ticket is served: `hear` is called with each change of the ticket, and
/// `answer` returns the answer to each question of the tool.
pub async fn call(
    session: &ClientSession,
    params: CallToolParams,
    mut hear: impl FnMut(&Ticket),
    mut answer: impl FnMut(&Value) -> Value,
) -> Result<CallToolResult> {
    let answer_to_call = session.request::<CallOrTicket>(params).await?;
    let number = match answer_to_call.read().map_err(unreadable)? {
        Answered::Complete(result) => return Ok(result),
        Answered::Ticket(ticket) => ticket.number,
    };
    let filter = SubscriptionFilter::default().with_other(LISTEN_KEY, json!([number]));
    let mut changes = session.listen(filter).await?;
    // Changes before the subscription began are not reported, so the current state is requested.
    let mut ticket = session.request::<Look>(Number { number }).await?;
    loop {
        hear(&ticket);
        match ticket.status {
            Status::Served => {
                return ticket
                    .result
                    .ok_or_else(|| Error::internal("a ticket without a result"));
            }
            Status::Failed => return Err(Error::internal(ticket.error.unwrap_or_default())),
            Status::Torn => return Err(Error::cancelled("the ticket was torn")),
            Status::Asking => {
                let question = ticket.question.take().unwrap_or_default();
                let said = Said {
                    number,
                    answer: answer(&question),
                };
                session.request::<Say>(said).await?;
            }
            Status::Waiting => {}
        }
        ticket = loop {
            match changes.next().await {
                Some(SubscriptionEvent::Other { method, params, .. }) if method == Called::NAME => {
                    let params =
                        params.ok_or_else(|| Error::internal("a call without a ticket"))?;
                    let ticket = Ticket::from_json(params.get());
                    break ticket.map_err(unreadable)?;
                }
                Some(_) => {}
                None => return Err(Error::closed("the server tells of the ticket no more")),
            }
        };
    }
}

fn unreadable(error: serde_json::Error) -> Error {
    Error::internal(format!("the server has said something else: {error}"))
}
