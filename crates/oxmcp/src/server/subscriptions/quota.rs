//! Quota of the resources that a client watches over one connection, by `resources/subscribe` and by `subscriptions/listen`.
//! They also count in the budget of an HTTP endpoint.

use std::sync::Arc;

use oxmcp_protocol::SubscriptionFilter;

#[cfg(feature = "http-server")]
use crate::session::driver::budget::Charge;
use crate::{
    error::{Error, Result},
    session::connection::{Connection, RequestContext},
    sync::Mutex,
};

/// The bytes of a request's id and `_meta` that do not count in the quota: several times as many as clients send.
const UNCOUNTED: usize = 4 << 10;
/// The approximate memory for a URI in addition to its text, in bytes.
const PER_URI: usize = 128;
/// The maximum ratio of the memory of a JSON value to that of its text: `0,` has 2 bytes, and 32 as a value.
const PER_BYTE_OF_JSON: usize = 16;

/// The quota of the resources that a client watches over one connection.
#[derive(Debug, Default)]
pub(crate) struct Quota(Mutex<Used>);

#[derive(Debug, Default)]
struct Used {
    uris: usize,
    bytes: usize,
}

impl Quota {
    /// Reserves quota for the data of a subscription: the resources of its filter, the values for extensions, and the metadata of
    /// its request.
    ///
    /// # Errors
    /// If it exceeds the quota, or the budget of the endpoint.
    pub(crate) fn reserve_filter(
        self: &Arc<Self>,
        filter: &SubscriptionFilter,
        cx: &RequestContext,
    ) -> Result<Reserved> {
        let kept = cx.bytes_kept();
        let metadata = kept.saturating_sub(UNCOUNTED);
        let metadata = (metadata > 0).then_some(metadata);
        let uris = filter.resource_subscriptions.iter().map(String::len);
        let others = filter.other.iter();
        let others = others.map(|(key, value)| key.len() + value.to_string().len());
        let uncounted = kept.min(UNCOUNTED) + others.clone().sum::<usize>() * PER_BYTE_OF_JSON;
        let lengths = uris.chain(others).chain(metadata);
        self.reserve(lengths, uncounted, &cx.parts().connection)
    }

    /// Reserves quota for items of these lengths. `uncounted` is the number of further bytes, which count only in the budget.
    ///
    /// # Errors
    /// If it exceeds the quota, or the budget of the endpoint.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        lengths: impl IntoIterator<Item = usize>,
        uncounted: usize,
        connection: &Connection,
    ) -> Result<Reserved> {
        let limits = &connection.limits;
        let mut more = Used::default();
        for length in lengths {
            more.uris += 1;
            more.bytes += length;
        }
        #[cfg(feature = "http-server")]
        let charge = charge(connection, more.bytes + more.uris * PER_URI + uncounted)?;
        #[cfg(not(feature = "http-server"))]
        let _ = (uncounted, PER_URI);
        let mut used = self.0.lock();
        let (uris, bytes) = (used.uris + more.uris, used.bytes + more.bytes);
        let (most_uris, most_bytes) = (limits.max_watched_uris, limits.max_watched_uri_bytes);
        if uris > most_uris || bytes > most_bytes {
            return Err(Error::internal(format!(
                "too many watched resources: the limit is {most_uris} URIs with {most_bytes} bytes in total, including values for \
                 extensions; unsubscribe from some"
            )));
        }
        *used = Used { uris, bytes };
        Ok(Reserved {
            quota: Arc::clone(self),
            used: more,
            #[cfg(feature = "http-server")]
            _charge: charge,
        })
    }
}

/// Charges the bytes to the connection's budget, if it has one.
///
/// # Errors
/// If they exceed the budget.
#[cfg(feature = "http-server")]
fn charge(connection: &Connection, bytes: usize) -> Result<Option<Charge>> {
    let Some(budget) = connection.outbox.budget() else {
        return Ok(None);
    };
    let mut charge = budget.charge(0);
    if !charge.grow(bytes) {
        return Err(Error::internal(
            "too many subscriptions at this endpoint; try again later",
        ));
    }
    Ok(Some(charge))
}

/// A part of the quota, which is released on drop.
#[derive(Debug)]
pub(crate) struct Reserved {
    quota: Arc<Quota>,
    used: Used,
    #[cfg(feature = "http-server")]
    _charge: Option<Charge>,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let mut used = self.quota.0.lock();
        used.uris -= self.used.uris;
        used.bytes -= self.used.bytes;
    }
}
