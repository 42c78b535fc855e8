//! The tolerance for peers that violate the specification, and its warnings.

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
};

use oxmcp_protocol::{
    Payload,
    lenient::{Leniency, Reading, Tolerated, mend_message},
};
use serde::de::DeserializeOwned;

use crate::{logged::Logged, sync::Mutex};

/// The maximum number of warnings, one per leniency and peer. Only peers that change their names would cause more.
const MAX_WARNINGS: usize = 1000;

/// The maximum number of recorded pairs of a leniency and a method. Few peers deviate in more than a handful of ways.
const MAX_RECORDED: usize = 200;

/// A deviation of a server from the specification that was tolerated, and how often.
///
/// See [`ClientSession::tolerated`](crate::ClientSession::tolerated).
#[cfg(feature = "client")]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToleratedDeviation {
    /// The kind of deviation. Its [name](Leniency::name) is that in the logs, and its [reason](Leniency::reason) a sentence.
    pub leniency: Leniency,
    /// The method of the request or notification. Empty if it is not known, as for a message that is not JSON-RPC to the letter.
    pub method: String,
    /// The number of times that it was tolerated. A response that is read from the cache counts again.
    pub count: u64,
}

/// The tolerance of a client or a server.
#[derive(Default)]
pub(crate) struct Tolerance {
    is_strict: bool,
    /// The leniencies that were logged, each with the name of the peer.
    warned: Mutex<HashSet<(String, Leniency)>>,
    /// The number of uses of each leniency for each method, if that is recorded.
    record: Option<Mutex<BTreeMap<(Leniency, String), u64>>>,
}

impl Tolerance {
    /// No tolerance: messages that violate the specification are rejected.
    pub(crate) fn strict() -> Self {
        Self {
            is_strict: true,
            ..Self::default()
        }
    }

    /// Reads params or a result strictly, and leniently if that fails. Then `note` gets the tolerated deviations.
    ///
    /// # Errors
    /// The error of the strict reading, if the text cannot be read leniently either.
    pub(crate) fn read<T: Payload + DeserializeOwned>(
        &self,
        peer: impl Fn() -> Option<String>,
        method: &str,
        json: &str,
        note: impl FnOnce(&[Tolerated]),
    ) -> serde_json::Result<T> {
        // An array would be read as the members of an object, in order.
        let strict = match json.starts_with('{') {
            true => T::from_json(json),
            false => Err(serde::de::Error::custom("expected an object")),
        };
        strict.or_else(|error| {
            let read = self.read_leniently(peer, method, json, note);
            read.ok_or(error)
        })
    }

    #[cold]
    fn read_leniently<T: Payload + DeserializeOwned>(
        &self,
        peer: impl Fn() -> Option<String>,
        method: &str,
        json: &str,
        note: impl FnOnce(&[Tolerated]),
    ) -> Option<T> {
        self.read_by(peer, method, || {
            let Reading {
                value, tolerated, ..
            } = T::from_json_leniently(json).ok()?;
            note(&tolerated);
            Some((value, tolerated))
        })
    }

    /// The intended message of bytes that could not be read strictly, if it is tolerated.
    pub(crate) fn mend(
        &self,
        peer: impl Fn() -> Option<String>,
        message: &[u8],
    ) -> Option<Vec<u8>> {
        self.read_by(peer, "", || mend_message(message))
    }

    /// The value of a lenient reading, if anything is tolerated: `read` returns it with what was tolerated.
    pub(crate) fn read_by<T>(
        &self,
        peer: impl Fn() -> Option<String>,
        method: &str,
        read: impl FnOnce() -> Option<(T, Vec<Tolerated>)>,
    ) -> Option<T> {
        if self.is_strict {
            return None;
        }
        let (value, tolerated) = read()?;
        self.warn(peer().as_deref(), method, &tolerated);
        Some(value)
    }

    /// Tolerates a deviation that was found elsewhere, if anything is tolerated. Returns whether it is.
    pub(crate) fn tolerate(&self, peer: Option<&str>, method: &str, deviation: Tolerated) -> bool {
        if !self.is_strict {
            self.warn(peer, method, &[deviation]);
        }
        !self.is_strict
    }

    /// Like [`tolerate`](Self::tolerate), for a deviation that is logged elsewhere.
    #[cfg(feature = "client")]
    pub(crate) fn tolerate_logged(&self, leniency: Leniency) -> bool {
        if !self.is_strict {
            self.count(leniency, "");
        }
        !self.is_strict
    }

    /// Logs the tolerated deviations, once per peer and leniency.
    pub(crate) fn warn(&self, peer: Option<&str>, method: &str, tolerated: &[Tolerated]) {
        for it in tolerated {
            self.count(it.leniency, method);
            if !self.is_new(peer.unwrap_or_default(), it.leniency) {
                continue;
            }
            tracing::warn!(
                peer = peer.map(|peer| tracing::field::display(Logged(peer))),
                method = %Logged(method),
                leniency = it.leniency.name(),
                place = %Logged(&it.place),
                detail = (!it.detail.is_empty()).then(|| tracing::field::display(Logged(&it.detail))),
                "tolerated a message that does not follow the specification"
            );
        }
    }

    /// Tolerance towards one peer, with a record of what was tolerated.
    #[cfg(feature = "client")]
    pub(crate) fn recording() -> Self {
        Self {
            record: Some(Mutex::default()),
            ..Self::default()
        }
    }

    /// The record, in the order of the leniencies.
    #[cfg(feature = "client")]
    pub(crate) fn record(&self) -> Vec<ToleratedDeviation> {
        let Some(record) = &self.record else {
            return Vec::new();
        };
        let record = record.lock();
        let deviations = record.iter();
        let deviations = deviations.map(|((leniency, method), count)| ToleratedDeviation {
            leniency: *leniency,
            method: method.clone(),
            count: *count,
        });
        deviations.collect()
    }

    fn count(&self, leniency: Leniency, method: &str) {
        let Some(record) = &self.record else { return };
        let mut record = record.lock();
        let key = (leniency, method.chars().take(100).collect());
        if record.len() < MAX_RECORDED || record.contains_key(&key) {
            let count = record.entry(key).or_default();
            *count = count.saturating_add(1);
        }
    }

    fn is_new(&self, peer: &str, leniency: Leniency) -> bool {
        let mut warned = self.warned.lock();
        // The name comes from the peer.
        let peer: String = peer.chars().take(100).collect();
        warned.len() < MAX_WARNINGS && warned.insert((peer, leniency))
    }
}

impl fmt::Debug for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.is_strict { "strict" } else { "lenient" };
        f.write_str(name)
    }
}
