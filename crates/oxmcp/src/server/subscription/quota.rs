use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Error, Limits, Result, protocol::SubscriptionFilter, session::RequestContext};

/// What a request may say of itself and its sender without its being counted, in bytes: several times what clients do say.
const USUALLY_SAID: usize = 4 << 10;

/// How much a client watches over one connection, in whichever way it asked for it.
#[derive(Debug, Default)]
pub(crate) struct Quota(Mutex<Used>);

#[derive(Debug, Default)]
struct Used {
    uris: usize,
    bytes: usize,
}

impl Quota {
    /// Takes room for all that a subscription keeps: the resources that its filter watches, what is there for extensions, and
    /// what its request said beside it.
    ///
    /// # Errors
    /// Where there is none.
    pub(super) fn take_all(
        self: &Arc<Self>,
        filter: &SubscriptionFilter,
        cx: &RequestContext,
        limits: &Limits,
    ) -> Result<Taken> {
        let beside = cx.bytes_kept().saturating_sub(USUALLY_SAID);
        let beside = (beside > 0).then_some(beside);
        let uris = filter.resource_subscriptions.iter().map(String::len);
        let others = filter.other.iter();
        let others = others.map(|(key, value)| key.len() + value.to_string().len());
        self.take(uris.chain(others).chain(beside), limits)
    }

    /// Takes room for things of these lengths.
    ///
    /// # Errors
    /// Where there is none.
    pub(super) fn take(
        self: &Arc<Self>,
        lengths: impl IntoIterator<Item = usize>,
        limits: &Limits,
    ) -> Result<Taken> {
        let mut more = Used::default();
        for length in lengths {
            more.uris += 1;
            more.bytes += length;
        }
        let mut used = self.lock();
        let (uris, bytes) = (used.uris + more.uris, used.bytes + more.bytes);
        let (most_uris, most_bytes) = (limits.max_watched_uris, limits.max_watched_uri_bytes);
        if uris > most_uris || bytes > most_bytes {
            return Err(Error::internal(format!(
                "too much is watched: the limit is {most_uris} URIs of {most_bytes} bytes together, with what is asked of extensions; give up some that are watched already"
            )));
        }
        *used = Used { uris, bytes };
        Ok(Taken {
            quota: Arc::clone(self),
            used: more,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Room that was taken; it is given back when this is dropped.
#[derive(Debug)]
pub(super) struct Taken {
    quota: Arc<Quota>,
    used: Used,
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut used = self.quota.lock();
        used.uris -= self.used.uris;
        used.bytes -= self.used.bytes;
    }
}
