//! The peer's requests that are being served.

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use oxmcp_protocol::RequestId;
use serde_json::json;
use tokio::sync::Notify;

use crate::{
    error::{Error, Result},
    session::task::Latch,
    sync::Mutex,
};

/// The requests that are being served, by ID. Requests that are answered at once are not entered.
#[derive(Debug)]
pub(crate) struct InFlight {
    state: Mutex<State>,
    limit: usize,
    /// Set once no new request may start.
    draining: Latch,
    /// Notified when the last request leaves, if that is awaited.
    emptied: Notify,
    /// Set once [`settled`](Self::settled) or [`works_ended`](Self::works_ended) was called.
    is_awaited: AtomicBool,
}

/// A request that is being served.
pub(crate) trait ServedRequest: fmt::Debug + Send + Sync {
    /// Cancels the request: no response is sent from now on.
    fn cancel(&self);

    /// Cancels the request at the end of the session, and answers it with an error. Returns whether its sender gets the error:
    /// not if the sender has cancelled it, or if it was answered.
    fn cut_short(&self) -> bool;
}

#[derive(Debug)]
struct State {
    served: HashMap<RequestId, Arc<dyn ServedRequest>>,
    /// The number of idle requests, which only wait for an event.
    idle: usize,
    /// The number of requests whose work has not ended, including those that were answered when the session ended.
    running: usize,
}

impl InFlight {
    pub(crate) fn new(limit: usize) -> Self {
        let state = State {
            served: HashMap::new(),
            idle: 0,
            running: 0,
        };
        Self {
            state: Mutex::new(state),
            limit,
            draining: Latch::default(),
            emptied: Notify::new(),
            is_awaited: AtomicBool::new(false),
        }
    }

    /// Checks whether a request with this ID may start now. A ping may exceed the limit: it checks whether this side is alive,
    /// and is answered at once, unless middleware delays it.
    ///
    /// # Errors
    /// If the ID is in use, the limit is reached, or the session is closing.
    pub(crate) fn admit(&self, id: &RequestId, method: &str) -> Result<()> {
        if self.draining.is_set() && method != "ping" {
            let error = Error::internal("the session is closing and accepts no new requests");
            return Err(error.with_data(json!({"reason": "closing"})));
        }
        let state = self.state.lock();
        if state.served.contains_key(id) {
            return Err(in_use(id));
        }
        let taken = state.served.len().saturating_sub(state.idle);
        let limit = self.limit;
        let spare = if method == "ping" { limit } else { 0 };
        if taken >= limit.saturating_add(spare) {
            let error = Error::internal(format!(
                "too many requests in flight: the limit is {limit}; wait for responses before sending more"
            ));
            return Err(error.with_data(json!({"reason": "busy", "limit": limit})));
        }
        Ok(())
    }

    /// Enters a request that is not answered at once.
    ///
    /// # Errors
    /// If its ID is in use meanwhile: over HTTP, two requests may have been admitted concurrently.
    pub(crate) fn enter(&self, id: &RequestId, request: Arc<dyn ServedRequest>) -> Result<()> {
        let mut state = self.state.lock();
        match state.served.entry(id.clone()) {
            Entry::Occupied(_) => return Err(in_use(id)),
            Entry::Vacant(entry) => entry.insert(request),
        };
        state.running += 1;
        Ok(())
    }

    /// Removes a request whose work has ended, and that is answered now or never.
    pub(crate) fn leave(&self, id: &RequestId) {
        let mut state = self.state.lock();
        state.served.remove(id);
        state.running = state.running.saturating_sub(1);
        if state.served.is_empty() && self.is_awaited.load(Ordering::Relaxed) {
            self.emptied.notify_waiters();
        }
    }

    /// Cancels a request: no response is sent from now on. Returns `false` if there is no such request.
    pub(crate) fn cancel(&self, id: &RequestId) -> bool {
        let cancelled = self.state.lock().served.get(id).cloned();
        cancelled.is_some_and(|request| {
            request.cancel();
            true
        })
    }

    /// Whether a request with this ID is being served.
    #[cfg(feature = "http-server")]
    pub(crate) fn has(&self, id: &RequestId) -> bool {
        self.state.lock().served.contains_key(id)
    }

    /// Cancels all requests.
    pub(crate) fn cancel_all(&self) {
        for request in self.state.lock().served.values() {
            request.cancel();
        }
    }

    /// Cancels all requests at the end of the session, and answers them with an error. Their handlers have their grace period,
    /// if the runtime lives on, and their results are dropped. Returns the number of requests that got the error.
    pub(crate) fn cut_short(&self) -> usize {
        let requests: Vec<_> = self.state.lock().served.drain().collect();
        let cut = requests.iter().filter(|(_, request)| request.cut_short());
        cut.count()
    }

    /// Marks one of the requests as idle until the returned guard is dropped: it does not count toward the limit.
    pub(crate) fn wait_idly(&self) -> IdleWait<'_> {
        self.state.lock().idle += 1;
        IdleWait(self)
    }

    /// Refuses new requests, and tells idle requests to end.
    pub(crate) fn refuse_new(&self) {
        self.draining.set();
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.is_set()
    }

    /// Waits until new requests are refused. Idle requests must then end, or they would delay the shutdown. Cancel safe.
    pub(crate) async fn drained(&self) {
        self.draining.wait().await;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.state.lock().served.is_empty()
    }

    /// Whether the work of a request has not ended, even if the request was taken.
    #[cfg(feature = "server")]
    pub(crate) fn is_running(&self) -> bool {
        self.state.lock().running > 0
    }

    /// Waits until the work of all requests has ended, including those that were taken. Cancel safe.
    #[cfg(feature = "server")]
    pub(crate) async fn works_ended(&self) {
        self.is_awaited.store(true, Ordering::Relaxed);
        loop {
            let emptied = self.emptied.notified();
            if !self.is_running() {
                return;
            }
            emptied.await;
        }
    }

    /// Waits until no request is being served. Cancel safe.
    #[cfg(feature = "http-server")]
    pub(crate) async fn settled(&self) {
        // The lock of the table orders this before the end of all requests in it.
        self.is_awaited.store(true, Ordering::Relaxed);
        loop {
            let emptied = self.emptied.notified();
            if self.is_empty() {
                return;
            }
            emptied.await;
        }
    }
}

fn in_use(id: &RequestId) -> Error {
    Error::invalid_request(format!(
        "duplicate request ID {id}: a request with this ID is in flight"
    ))
}

/// A guard that marks a request as idle until it is dropped.
#[derive(Debug)]
pub(crate) struct IdleWait<'a>(&'a InFlight);

impl Drop for IdleWait<'_> {
    fn drop(&mut self) {
        self.0.state.lock().idle -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    struct Context(Latch);

    impl ServedRequest for Context {
        fn cancel(&self) {
            self.0.set();
        }

        fn cut_short(&self) -> bool {
            false
        }
    }

    #[cfg(feature = "http-server")]
    #[test]
    fn last_request_to_leave_wakes_the_waiter() {
        use futures_util::FutureExt;

        let in_flight = InFlight::new(4);
        let ids = [1, 2].map(RequestId::from);
        for id in &ids {
            in_flight.enter(id, Arc::<Context>::default()).unwrap();
        }
        let mut settled = Box::pin(in_flight.settled());
        for id in &ids {
            assert!(settled.as_mut().now_or_never().is_none());
            in_flight.leave(id);
        }
        assert!(settled.as_mut().now_or_never().is_some());
    }

    #[test]
    fn requests_and_pings_have_separate_limits() {
        let in_flight = InFlight::new(2);
        let may = |method| in_flight.admit(&RequestId::from(0), method).is_ok();
        let enter = |id: i64| in_flight.enter(&id.into(), Arc::<Context>::default());
        for id in 1..=2 {
            assert!(may("x"), "{id}");
            enter(id).unwrap();
        }
        assert!(!may("x"));
        let idle = in_flight.wait_idly();
        assert!(may("x"), "one of them only waits");
        drop(idle);
        assert!(!may("x"));
        for id in 3..=4 {
            assert!(may("ping"), "{id}");
            enter(id).unwrap();
        }
        assert!(!may("ping"));
    }

    #[test]
    fn only_pings_are_answered_while_session_ends() {
        let in_flight = InFlight::new(2);
        in_flight.refuse_new();
        let error = in_flight.admit(&1.into(), "x").unwrap_err();
        assert!(error.message().contains("closing"), "{error}");
        in_flight.admit(&1.into(), "ping").unwrap();
    }

    #[test]
    fn first_request_with_an_id_continues() {
        let in_flight = InFlight::new(4);
        let id = RequestId::from(1);
        let [first, second] = [(); 2].map(|()| Arc::<Context>::default());
        // Over HTTP both may be admitted before one has entered.
        in_flight.admit(&id, "x").unwrap();
        in_flight.enter(&id, Arc::clone(&first) as _).unwrap();
        let error = in_flight.enter(&id, Arc::clone(&second) as _).unwrap_err();
        assert!(error.message().contains("in flight"), "{error}");
        assert!(in_flight.cancel(&id));
        assert!(first.0.is_set() && !second.0.is_set());
    }
}
