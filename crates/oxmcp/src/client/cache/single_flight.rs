//! The questions that are being asked.

use std::{collections::HashMap, sync::Arc};

use crate::client::cache::key::Ask;

/// What a caller leaves a question by.
pub(crate) type Ticket = u64;

/// The questions that are being asked. `F` is what those who ask the same at once share.
#[derive(Debug)]
pub(crate) struct Flights<F> {
    open: HashMap<Ticket, Flight<F>>,
    /// The newest flight of each question.
    newest: HashMap<Arc<Ask>, Ticket>,
    last: Ticket,
}

#[derive(Debug)]
struct Flight<F> {
    ask: Arc<Ask>,
    shared: F,
    /// How many wait for it.
    callers: usize,
    /// Whether others may wait for it, too.
    joinable: bool,
    /// Whether its answer may be kept: nothing has said since it began that the answer is another one now.
    keeps: bool,
}

impl<F> Default for Flights<F> {
    fn default() -> Self {
        Self {
            open: HashMap::new(),
            newest: HashMap::new(),
            last: 0,
        }
    }
}

impl<F: Clone + Default> Flights<F> {
    /// Enters a caller. With `joins` it waits with those who ask the same, if there are any; otherwise it asks by
    /// itself, and what older flights bring is no longer kept.
    pub(crate) fn enter(&mut self, ask: &Arc<Ask>, joins: bool) -> (Ticket, F) {
        let newest = self.newest.get(ask).copied();
        if let Some(ticket) = newest
            && let Some(flight) = self.open.get_mut(&ticket)
        {
            if joins && flight.joinable {
                flight.callers += 1;
                return (ticket, flight.shared.clone());
            }
            flight.keeps = false;
        }
        self.last += 1;
        let shared = F::default();
        let flight = Flight {
            ask: Arc::clone(ask),
            shared: shared.clone(),
            callers: 1,
            joinable: joins,
            keeps: true,
        };
        self.open.insert(self.last, flight);
        self.newest.insert(Arc::clone(ask), self.last);
        (self.last, shared)
    }

    /// The answer is there, or there will be none: nobody joins any more. Returns the question, if the answer may be
    /// kept.
    pub(crate) fn settle(&mut self, ticket: Ticket) -> Option<Arc<Ask>> {
        let flight = self.open.get_mut(&ticket)?;
        let ask = Arc::clone(&flight.ask);
        let keeps = flight.keeps;
        flight.keeps = false;
        self.forget_newest(ticket, &ask);
        keeps.then_some(ask)
    }

    /// A caller waits no longer.
    pub(crate) fn leave(&mut self, ticket: Ticket) {
        let Some(flight) = self.open.get_mut(&ticket) else {
            return;
        };
        flight.callers -= 1;
        if flight.callers == 0
            && let Some(flight) = self.open.remove(&ticket)
        {
            self.forget_newest(ticket, &flight.ask);
        }
    }

    /// What these flights bring is not kept, and nobody who asks from now on waits for it.
    pub(crate) fn outdate_where(&mut self, is_wrong: impl Fn(&Ask) -> bool) {
        let open = &mut self.open;
        self.newest.retain(|ask, ticket| {
            let wrong = is_wrong(ask);
            if let Some(flight) = open.get_mut(ticket).filter(|_| wrong) {
                flight.keeps = false;
            }
            !wrong
        });
    }

    fn forget_newest(&mut self, ticket: Ticket, ask: &Ask) {
        if self.newest.get(ask) == Some(&ticket) {
            self.newest.remove(ask);
        }
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.newest.is_empty()
    }
}
