//! Quota of what a client watches over one connection, by `resources/subscribe` and by `subscriptions/listen`.

use std::sync::Arc;

use oxmcp_protocol::SubscriptionFilter;

use crate::{
    error::{Error, Result},
    limits::Limits,
    session::connection::RequestContext,
    sync::Mutex,
};

/// The bytes of a request's id and `_meta` that are not counted: several times what clients send.
const UNCOUNTED: usize = 4 << 10;

/// How much a client watches over one connection.
#[derive(Debug, Default)]
pub(crate) struct Quota(Mutex<Used>);

#[derive(Debug, Default)]
struct Used {
    uris: usize,
    bytes: usize,
}

impl Quota {
    /// Reserves what a subscription keeps: the resources of its filter, the values for extensions, and the metadata of its
    /// request.
    ///
    /// # Errors
    /// Where it is more than the quota.
    pub(super) fn reserve_filter(
        self: &Arc<Self>,
        filter: &SubscriptionFilter,
        cx: &RequestContext,
        limits: &Limits,
    ) -> Result<Reserved> {
        let metadata = cx.bytes_kept().saturating_sub(UNCOUNTED);
        let metadata = (metadata > 0).then_some(metadata);
        let uris = filter.resource_subscriptions.iter().map(String::len);
        let others = filter.other.iter();
        let others = others.map(|(key, value)| key.len() + value.to_string().len());
        self.reserve(uris.chain(others).chain(metadata), limits)
    }

    /// Reserves things of these lengths.
    ///
    /// # Errors
    /// Where it is more than the quota.
    pub(super) fn reserve(
        self: &Arc<Self>,
        lengths: impl IntoIterator<Item = usize>,
        limits: &Limits,
    ) -> Result<Reserved> {
        let mut more = Used::default();
        for length in lengths {
            more.uris += 1;
            more.bytes += length;
        }
        let mut used = self.0.lock();
        let (uris, bytes) = (used.uris + more.uris, used.bytes + more.bytes);
        let (most_uris, most_bytes) = (limits.max_watched_uris, limits.max_watched_uri_bytes);
        if uris > most_uris || bytes > most_bytes {
            return Err(Error::internal(format!(
                "too much is watched: the limit is {most_uris} URIs of {most_bytes} bytes together, with what is asked of extensions; give up some that are watched already"
            )));
        }
        *used = Used { uris, bytes };
        Ok(Reserved {
            quota: Arc::clone(self),
            used: more,
        })
    }
}

/// A part of the quota, which is released when this is dropped.
#[derive(Debug)]
pub(super) struct Reserved {
    quota: Arc<Quota>,
    used: Used,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let mut used = self.quota.0.lock();
        used.uris -= self.used.uris;
        used.bytes -= self.used.bytes;
    }
}
