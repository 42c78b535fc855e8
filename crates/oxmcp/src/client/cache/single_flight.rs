//! Coalescing of equal requests that are made at once: one is sent, and the others wait for its response.

use std::{collections::HashMap, sync::Arc};

use tokio::sync::OnceCell;

use crate::client::cache::key::CacheLookup;

/// The response that equal calls share, if it stays fresh for a while. If the call that makes the request gives up, the
/// next caller takes over.
pub(crate) type SharedAnswer = Arc<OnceCell<Option<Arc<str>>>>;

/// The number of a flight, for its callers.
pub(crate) type Ticket = u64;

/// The cacheable requests that are in flight.
#[derive(Debug, Default)]
pub(crate) struct SingleFlight {
    open: HashMap<Ticket, Flight>,
    /// The newest flight of each request.
    newest: HashMap<Arc<CacheLookup>, Ticket>,
    last: Ticket,
}

#[derive(Debug)]
struct Flight {
    lookup: Arc<CacheLookup>,
    shared: SharedAnswer,
    /// The number of calls that wait for the flight.
    callers: usize,
    /// Whether other calls may join the flight.
    joinable: bool,
    /// Whether the response may be stored: no change has invalidated the flight since it began.
    storable: bool,
}

impl SingleFlight {
    /// Adds a caller. With `joins` it waits for an equal flight, if there is one; otherwise it makes the request itself,
    /// and the responses of older flights are no longer stored.
    pub(crate) fn enter(
        &mut self,
        lookup: &Arc<CacheLookup>,
        joins: bool,
    ) -> (Ticket, SharedAnswer) {
        let newest = self.newest.get(lookup).copied();
        if let Some(ticket) = newest
            && let Some(flight) = self.open.get_mut(&ticket)
        {
            if joins && flight.joinable {
                flight.callers += 1;
                return (ticket, flight.shared.clone());
            }
            flight.storable = false;
        }
        self.last += 1;
        let shared = SharedAnswer::default();
        let flight = Flight {
            lookup: Arc::clone(lookup),
            shared: shared.clone(),
            callers: 1,
            joinable: joins,
            storable: true,
        };
        self.open.insert(self.last, flight);
        self.newest.insert(Arc::clone(lookup), self.last);
        (self.last, shared)
    }

    /// Ends a flight with its response, or without one: no more callers join it. Returns the request, if the response may be
    /// stored.
    pub(crate) fn settle(&mut self, ticket: Ticket) -> Option<Arc<CacheLookup>> {
        let flight = self.open.get_mut(&ticket)?;
        let lookup = Arc::clone(&flight.lookup);
        let storable = flight.storable;
        flight.storable = false;
        self.remove_newest(ticket, &lookup);
        storable.then_some(lookup)
    }

    /// Removes a caller.
    pub(crate) fn leave(&mut self, ticket: Ticket) {
        let Some(flight) = self.open.get_mut(&ticket) else {
            return;
        };
        flight.callers -= 1;
        if flight.callers == 0
            && let Some(flight) = self.open.remove(&ticket)
        {
            self.remove_newest(ticket, &flight.lookup);
        }
    }

    /// Invalidates flights: their responses are not stored, and no further caller joins them.
    pub(crate) fn invalidate_where(&mut self, is_wrong: impl Fn(&CacheLookup) -> bool) {
        let open = &mut self.open;
        self.newest.retain(|lookup, ticket| {
            let wrong = is_wrong(lookup);
            if let Some(flight) = open.get_mut(ticket).filter(|_| wrong) {
                flight.storable = false;
            }
            !wrong
        });
    }

    fn remove_newest(&mut self, ticket: Ticket, lookup: &CacheLookup) {
        if self.newest.get(lookup) == Some(&ticket) {
            self.newest.remove(lookup);
        }
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.newest.is_empty()
    }
}
