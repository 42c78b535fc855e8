//! What is kept and what is being asked, together: the decisions of the cache, told the time by whoever uses it.

use std::{sync::Arc, time::Duration};

use crate::{
    client::cache::{
        key::{Ask, Change, Owner, Place, Server},
        options::CacheOptions,
        single_flight::{Flights, Ticket},
        store::Store,
    },
    protocol::Freshness,
};

/// The state of a cache. Times are those since it was made.
#[derive(Debug)]
pub(crate) struct Core<F> {
    store: Store,
    flights: Flights<F>,
}

impl<F> Default for Core<F> {
    fn default() -> Self {
        Self {
            store: Store::default(),
            flights: Flights::default(),
        }
    }
}

impl<F: Clone + Default> Core<F> {
    pub(crate) fn configure(&mut self, options: CacheOptions) {
        self.store.configure(options);
    }

    pub(crate) fn fresh(&mut self, ask: &Ask, now: Duration) -> Option<Arc<str>> {
        self.store.fresh(ask, now)
    }

    pub(crate) fn stale(&mut self, ask: &Ask, now: Duration) -> Option<Arc<str>> {
        self.store.stale(ask, now)
    }

    pub(crate) fn enter(&mut self, ask: &Arc<Ask>, joins: bool) -> (Ticket, F) {
        self.flights.enter(ask, joins)
    }

    pub(crate) fn leave(&mut self, ticket: Ticket) {
        self.flights.leave(ticket);
    }

    /// There will be no answer.
    pub(crate) fn fail(&mut self, ticket: Ticket) {
        self.flights.settle(ticket);
    }

    /// Takes the answer of a flight, and keeps it if nothing speaks against it. Returns it where it stays fresh for a
    /// while, for those who wait for it, too.
    pub(crate) fn answer(
        &mut self,
        ticket: Ticket,
        freshness: Freshness,
        text: &str,
        now: Duration,
    ) -> Option<Arc<str>> {
        match self.flights.settle(ticket) {
            Some(ask) => self.store.put(&ask, freshness, text, now),
            None => self.store.lasts(freshness).then(|| text.into()),
        }
    }

    /// A server says, in one of its sessions, that something has changed. Whoever asked the server has to ask again.
    pub(crate) fn change(&mut self, server: &Server, change: &Change) {
        self.flights
            .outdate_where(|ask| ask.place.server == *server && change.concerns(&ask.question));
        self.store
            .remove_where(|key| key.server == *server && change.concerns(&key.question));
    }

    /// A server no longer knows where a page begins: the pages that say so are of an old list.
    pub(crate) fn forget_pages(&mut self, ask: &Ask) {
        let kind = ask.question.kind;
        self.flights.outdate_where(|other| {
            other.place.server == ask.place.server && other.question.kind == kind
        });
        self.store
            .remove_where(|key| key.server == ask.place.server && key.question.kind == kind);
    }

    /// Forgets what nobody can ask for any more: what is for a session alone that is over.
    pub(crate) fn forget(&mut self, place: &Place) {
        self.store.remove_where(|key| {
            key.owner == Owner::Session(place.session)
                || key.server == Server::OfSession(place.session)
        });
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.flights.outdate_where(|_| true);
        self.store.remove_where(|_| true);
    }

    #[cfg(test)]
    pub(crate) fn totals(&self) -> (usize, usize) {
        self.store.totals()
    }

    #[cfg(test)]
    pub(crate) fn is_idle(&self) -> bool {
        self.flights.is_empty()
    }
}
