//! The server's side: calls that become tickets, and the methods by which clients get them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use oxmcp::{
    CancellationToken, Error, Extension, RequestContext, Result, Revision, Server, Tool, ToolCall,
    ToolResponse,
    protocol::{EmptyResult, InputRequest},
    traits::{DetachedAnswer, DetachedProgress, DetachedWork},
};
use serde_json::{Value, json, value::to_raw_value};
use tokio::{sync::oneshot, task::yield_now};

use crate::wire::{
    Called, DESK, ID, LISTEN_KEY, Look, Number, RESULT_TYPE, REVISION, Said, Say, Status, TICKETED,
    Tear, Ticket,
};

/// The greatest number of tickets that a server has at once.
const MAX_TICKETS: usize = 100;

/// The extension, for [`Server::extension`].
pub fn extension() -> Extension {
    let modern = Revision::LATEST..;
    Extension::new(ID)
        .settings(json!({"maxTickets": MAX_TICKETS}))
        .revision(REVISION)
        .requires(DESK)
        .requires_capability("tools")
        .requires_client()
        .result_type(RESULT_TYPE)
        .method::<Look, _>(modern.clone(), look)
        .method::<Say, _>(modern.clone(), say)
        .method::<Tear, _>(modern.clone(), tear)
        .notifies::<Called>(modern)
        .listen_key(LISTEN_KEY)
        .state(Arc::new(Tickets::default()))
}

/// Tools whose calls may become tickets.
pub trait Ticketed {
    /// Answers a call that is not done at once with a ticket, if the client declares the extension.
    #[must_use]
    fn ticketed(self) -> Self;
}

impl Ticketed for Tool {
    fn ticketed(self) -> Self {
        self.requires(ID)
            .entry(|entry| {
                entry.meta.insert(TICKETED, true);
            })
            .layer(run)
    }
}

/// The tickets of a server.
#[derive(Default)]
struct Tickets(Mutex<BTreeMap<u64, Open>>);

struct Open {
    ticket: Ticket,
    cancel: CancellationToken,
    answer: Option<oneshot::Sender<Value>>,
}

impl Tickets {
    fn of(cx: &RequestContext) -> Result<Arc<Self>> {
        let missing = || Error::internal("the server has no tickets");
        cx.extension_state(ID).ok_or_else(missing)
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<u64, Open>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a ticket, and removes the oldest finished one if there is no room.
    fn draw(&self, cancel: CancellationToken) -> Result<Ticket> {
        let mut all = self.all();
        if all.len() >= MAX_TICKETS {
            let oldest = all.iter().find(|(_, it)| it.ticket.is_over());
            let Some(oldest) = oldest.map(|(number, _)| *number) else {
                return Err(Error::limit(
                    "there are no more tickets; wait for some to be served",
                ));
            };
            all.remove(&oldest);
        }
        let ticket = Ticket {
            number: all.last_key_value().map_or(1, |(last, _)| last + 1),
            status: Status::Waiting,
            note: None,
            question: None,
            result: None,
            error: None,
        };
        let open = Open {
            ticket: ticket.clone(),
            cancel,
            answer: None,
        };
        all.insert(ticket.number, open);
        Ok(ticket)
    }

    /// Changes a ticket that is not finished, and notifies subscribers.
    fn change(&self, server: &Server, number: u64, change: impl FnOnce(&mut Open)) -> Result<()> {
        let told = {
            let mut all = self.all();
            let open = all.get_mut(&number).filter(|open| !open.ticket.is_over());
            open.map(|open| {
                change(open);
                open.ticket.clone()
            })
        };
        match told {
            Some(ticket) => server.publish::<Called>(LISTEN_KEY, number, ticket),
            None => Ok(()),
        }
    }
}

async fn run(call: ToolCall) -> Result<ToolResponse> {
    let cx = call.context().clone();
    if cx.expect_extension(ID).is_err() {
        return call.run().await;
    }
    let tickets = Tickets::of(&cx)?;
    let server = cx.server()?;
    let mut call = call.detachable();
    tokio::select! {
        biased;
        done = call.run() => return done,
        () = yield_now() => {}
    }
    if call.has_asked() {
        return call.run().await;
    }
    let cancel = CancellationToken::new();
    let ticket = tickets.draw(cancel.clone())?;
    let counter = Arc::new(Counter {
        tickets,
        server,
        number: ticket.number,
    });
    let rest = call.detach(Arc::clone(&counter) as Arc<dyn DetachedWork>, cancel);
    let rest = rest.map_err(|_| Error::internal("the call has asked its client"))?;
    tokio::spawn(async move {
        let done = rest.await;
        counter.change(|open| match done {
            Ok(response) => {
                open.ticket.status = Status::Served;
                open.ticket.result = response.result().cloned();
            }
            Err(error) => {
                open.ticket.status = Status::Failed;
                open.ticket.error = Some(error.message().to_owned());
            }
        })
    });
    ToolResponse::from_extension(&cx, RESULT_TYPE, ticket)
}

/// The detached work of a ticket.
struct Counter {
    tickets: Arc<Tickets>,
    server: Server,
    number: u64,
}

impl Counter {
    fn change(&self, change: impl FnOnce(&mut Open)) -> Result<()> {
        self.tickets.change(&self.server, self.number, change)
    }
}

impl DetachedWork for Counter {
    fn progress(&self, report: DetachedProgress) {
        let note = report.message.unwrap_or_else(|| report.done.to_string());
        let _ = self.change(|open| open.ticket.note = Some(note));
    }

    fn ask(&self, _key: String, question: InputRequest) -> DetachedAnswer {
        let (tell, answer) = oneshot::channel();
        let asked =
            serde_json::to_value(&question).map_err(|error| Error::internal(error.to_string()));
        let asked = asked.and_then(|question| {
            self.change(|open| {
                open.ticket.status = Status::Asking;
                open.ticket.question = Some(question);
                open.answer = Some(tell);
            })
        });
        Box::pin(async move {
            asked?;
            let answer = answer.await;
            let answer = answer.map_err(|_| Error::cancelled("the ticket was torn"))?;
            to_raw_value(&answer).map_err(|error| Error::internal(error.to_string()))
        })
    }
}

fn unknown(number: u64) -> Error {
    Error::invalid_params(format!("there is no ticket {number}"))
}

async fn look(cx: RequestContext, Number { number }: Number) -> Result<Ticket> {
    let tickets = Tickets::of(&cx)?;
    let all = tickets.all();
    let open = all.get(&number).ok_or_else(|| unknown(number))?;
    Ok(open.ticket.clone())
}

async fn say(cx: RequestContext, Said { number, answer }: Said) -> Result<EmptyResult> {
    Tickets::of(&cx)?.change(&cx.server()?, number, |open| {
        if let Some(waiting) = open.answer.take() {
            open.ticket.status = Status::Waiting;
            open.ticket.question = None;
            // If the handler no longer waits for the answer, the ticket is about to be finished.
            let _ = waiting.send(answer);
        }
    })?;
    Ok(EmptyResult::default())
}

async fn tear(cx: RequestContext, Number { number }: Number) -> Result<EmptyResult> {
    Tickets::of(&cx)?.change(&cx.server()?, number, |open| {
        open.ticket.status = Status::Torn;
        open.ticket.question = None;
        open.answer = None;
        open.cancel.cancel();
    })?;
    Ok(EmptyResult::default())
}
