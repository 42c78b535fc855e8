//! Open calls at upstreams, and those of them that wait for an answer of their client.
//!
//! A legacy upstream asks while its call is open: the call waits here, under an id that is the state of the request, until the
//! client repeats the request with the answer.

use std::{
    collections::HashMap,
    fmt::Write,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use oxmcp::{
    Error, Question, RequestContext, RequestId, Result, ServerSession, tasks::TaskContext,
};
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc},
    task::{AbortHandle, JoinSet},
    time::sleep,
};

use super::{
    events::{Asked, CAPACITY, CallEvent, OpenCall, named},
    links::{Holder, Link, share_of},
    path::random,
    tasks::{Making, Outcome},
};

/// The longest time that a call waits for the answer of its client.
const PARKED_FOR: Duration = Duration::from_secs(600);

/// The beginning of the id of a call that waits.
pub(super) const PARKED: &str = "call:";

/// A call that is open at an upstream.
pub(super) struct RunningCall {
    pub(super) future: Making,
    pub(super) events: mpsc::Receiver<CallEvent>,
    /// The questions that wait for an answer, with their keys.
    pub(super) asked: Vec<(String, Asked)>,
    /// The questions of a task, which are asked while it runs.
    pub(super) asking: JoinSet<()>,
    pub(super) questions: usize,
    /// The number of status messages.
    pub(super) statuses: u32,
    /// The name of the server, which its questions have.
    pub(super) server: Option<String>,
    pub(super) owner: Owner,
    /// The client that the call counts for while it waits.
    pub(super) holder: Holder,
    pub(super) held: CallResources,
}

/// The resources that a call holds while it is open.
pub(super) struct CallResources {
    pub(super) open: OpenCall,
    pub(super) _link: Arc<Link>,
    pub(super) _permit: OwnedSemaphorePermit,
}

/// The client and the target of a call: nobody else can continue it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) principal: Option<String>,
    /// The request of a client with a session: it stays open while the client is asked.
    pub(super) request: Option<(ServerSession, RequestId)>,
    /// The task that the call is.
    pub(super) task: Option<String>,
    pub(super) target: String,
}

/// The calls that wait for their clients. The permits of the calls bound them.
pub(super) struct ParkedCalls {
    /// The calls by their ids.
    waiting: Arc<Mutex<HashMap<String, ParkedCall>>>,
    max_calls: usize,
}

/// A call that waits, and the task that ends it if its client does not come back.
struct ParkedCall {
    call: RunningCall,
    expiry: AbortHandle,
}

impl ParkedCalls {
    pub(super) fn new(max_calls: usize) -> Self {
        Self {
            waiting: Arc::default(),
            max_calls,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, ParkedCall>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// # Errors
    /// If too many calls of the client wait, or the operating system provides no random bytes.
    pub(super) fn put(&self, call: RunningCall) -> Result<String> {
        let mut id = String::from(PARKED);
        for byte in random::<16>()? {
            // Writing to a string cannot fail.
            let _ = write!(id, "{byte:02x}");
        }
        let share = share_of(self.max_calls);
        let mut parked = self.lock();
        let own = parked.values().filter(|it| it.call.holder == call.holder);
        if own.count() >= share {
            drop(parked);
            return Err(Error::limit(format!(
                "the client already has {share} waiting calls of the {} of `Gateway::max_calls`; answer one of them, or try \
                 again later",
                self.max_calls
            )));
        }
        let (calls, own) = (Arc::downgrade(&self.waiting), id.clone());
        let expiry = tokio::spawn(async move {
            sleep(PARKED_FOR).await;
            let calls = calls.upgrade();
            let expired = calls.map(|it| {
                let mut calls = it.lock().unwrap_or_else(PoisonError::into_inner);
                calls.remove(&own)
            });
            // Outside the lock: it cancels the call.
            drop(expired);
        });
        let expiry = expiry.abort_handle();
        call.held.open.set_parked(true);
        parked.insert(id.clone(), ParkedCall { call, expiry });
        Ok(id)
    }

    /// Ends the calls of a request that has ended.
    pub(super) fn end(&self, request: &(ServerSession, RequestId)) {
        let ended: Vec<ParkedCall> = {
            let mut calls = self.lock();
            let is_ended =
                |_: &String, it: &mut ParkedCall| it.call.owner.request.as_ref() == Some(request);
            calls.extract_if(is_ended).map(|(_, call)| call).collect()
        };
        // Outside the lock: it cancels the calls.
        for ParkedCall { call, expiry } in ended {
            expiry.abort();
            drop(call);
        }
    }

    /// # Errors
    /// If the call is not open any more, or belongs to another client.
    pub(super) fn take(&self, id: &str, owner: &Owner) -> Result<RunningCall> {
        let mut calls = self.lock();
        if calls.get(id).is_some_and(|it| it.call.owner == *owner)
            && let Some(ParkedCall { call, expiry }) = calls.remove(id)
        {
            expiry.abort();
            call.held.open.set_parked(false);
            return Ok(call);
        }
        Err(Error::invalid_params(
            "the call that asked the question is no longer open; call again",
        ))
    }
}

impl RunningCall {
    /// Gives the answers that came with a request to the upstream.
    pub(super) fn answer(&mut self, cx: &RequestContext) {
        let answers = cx.input_responses();
        let asked = std::mem::take(&mut self.asked);
        for (key, question) in asked {
            match answers.get(&key) {
                // The upstream may have given up.
                Some(answer) => drop(question.answer.send(Ok(answer.clone()))),
                None => self.asked.push((key, question)),
            }
        }
    }

    /// Waits for the outcome, and passes on events. Returns `None` if the upstream asks.
    pub(super) async fn run(&mut self, cx: &RequestContext) -> Result<Option<Outcome>> {
        loop {
            tokio::select! {
                biased;
                () = cx.cancelled() => return Err(Error::cancelled("the call was cancelled")),
                Some(_) = self.asking.join_next() => {}
                Some(event) = self.events.recv() => self.pass(cx, event).await,
                outcome = &mut self.future => {
                    let outcome = outcome?;
                    let (_, ended) = mpsc::channel(1);
                    let mut events = std::mem::replace(&mut self.events, ended);
                    for event in arrived(&mut events) {
                        self.pass(cx, event).await;
                    }
                    return Ok(Some(outcome));
                }
            }
            if !self.asked.is_empty() && self.events.is_empty() {
                return Ok(None);
            }
        }
    }

    async fn pass(&mut self, cx: &RequestContext, event: CallEvent) {
        match event {
            CallEvent::Progress(progress) => {
                let mut report = cx.progress(progress.progress);
                if let Some(total) = progress.total {
                    report = report.total(total);
                }
                if let Some(message) = progress.message {
                    report = report.message(message);
                }
                report.await;
            }
            CallEvent::Log(message) => {
                let mut log = cx.log(message.level, &message.data);
                if let Some(logger) = message.logger {
                    log = log.logger(logger);
                }
                log.await;
            }
            CallEvent::Status(message) => {
                self.statuses += 1;
                cx.progress(self.statuses).message(message).await;
            }
            CallEvent::Other(method, params) => {
                if let Err(error) = cx.notify_raw(method, &params).await {
                    tracing::debug!(%error, "could not pass on a notification of a server behind the gateway");
                }
            }
            CallEvent::Asked(asked) if self.asked.len() + self.asking.len() >= CAPACITY => {
                let error = "too many open questions in one call; ask them one after another";
                // The upstream may have given up.
                let _ = asked.answer.send(Err(Error::limit(error)));
            }
            CallEvent::Asked(asked) => {
                let key = format!("question-{}", self.questions);
                self.questions += 1;
                match cx.task_id() {
                    Some(_) => self.ask(cx.clone(), key, asked),
                    None => self.asked.push((key, asked)),
                }
            }
        }
    }

    /// Asks a question of a task.
    fn ask(&mut self, cx: RequestContext, key: String, asked: Asked) {
        let request = named(self.server.as_deref(), asked.request);
        let answer = asked.answer;
        self.asking.spawn(async move {
            let answered = cx.put(Question::raw(key, request)).await;
            // The upstream may have given up.
            let _ = answer.send(answered);
        });
    }
}

/// The events that have arrived, at most as many as can wait: other calls of the session may add more without end.
fn arrived<T>(events: &mut mpsc::Receiver<T>) -> impl Iterator<Item = T> {
    (0..CAPACITY).map_while(|_| events.try_recv().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_are_added_without_end_are_left() {
        let (sender, mut events) = mpsc::channel(CAPACITY);
        sender.try_send(0).unwrap();
        let mut passed = 0;
        for event in arrived(&mut events) {
            passed += 1;
            // An end, so that the test has one.
            if event < 10 * CAPACITY {
                sender.try_send(event + 1).unwrap();
            }
        }
        assert_eq!(passed, CAPACITY);
        assert_eq!(arrived(&mut events).next(), Some(CAPACITY));
    }
}
