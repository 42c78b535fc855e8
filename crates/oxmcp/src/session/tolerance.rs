//! The tolerance for peers that violate the specification, and its warnings.

use std::{collections::HashSet, fmt};

use oxmcp_protocol::{
    Payload,
    lenient::{Leniency, Reading, Tolerated, mend_message},
};
use serde::de::DeserializeOwned;

use crate::{logged::Logged, sync::Mutex};

/// The maximum number of warnings, one per leniency and peer. Only peers that change their names would cause more.
const MAX_WARNINGS: usize = 1000;

/// The tolerance of a client or a server.
#[derive(Default)]
pub(crate) struct Tolerance {
    is_strict: bool,
    /// The leniencies that were logged, each with the name of the peer.
    warned: Mutex<HashSet<(String, Leniency)>>,
}

impl Tolerance {
    /// No tolerance: messages that violate the specification are rejected.
    pub(crate) fn strict() -> Self {
        Self {
            is_strict: true,
            ..Self::default()
        }
    }

    /// Reads params or a result strictly, and leniently if that fails.
    ///
    /// # Errors
    /// The error of the strict reading, if the text cannot be read leniently either.
    pub(crate) fn read<T: Payload + DeserializeOwned>(
        &self,
        peer: impl Fn() -> Option<String>,
        method: &str,
        json: &str,
    ) -> serde_json::Result<T> {
        // An array would be read as the members of an object, in order.
        let strict = match json.starts_with('{') {
            true => T::from_json(json),
            false => Err(serde::de::Error::custom("expected an object")),
        };
        strict.or_else(|error| self.read_leniently(peer, method, json).ok_or(error))
    }

    #[cold]
    fn read_leniently<T: Payload + DeserializeOwned>(
        &self,
        peer: impl Fn() -> Option<String>,
        method: &str,
        json: &str,
    ) -> Option<T> {
        if self.is_strict {
            return None;
        }
        let Reading {
            value, tolerated, ..
        } = T::from_json_leniently(json).ok()?;
        self.warn(peer().as_deref(), method, &tolerated);
        Some(value)
    }

    /// The intended message of bytes that could not be read strictly, if it is tolerated.
    pub(crate) fn mend(
        &self,
        peer: impl Fn() -> Option<String>,
        message: &[u8],
    ) -> Option<Vec<u8>> {
        if self.is_strict {
            return None;
        }
        let (mended, tolerated) = mend_message(message)?;
        self.warn(peer().as_deref(), "", &tolerated);
        Some(mended)
    }

    /// Tolerates a deviation that was found elsewhere, if anything is tolerated. Returns whether it is.
    pub(crate) fn tolerate(&self, peer: Option<&str>, method: &str, deviation: Tolerated) -> bool {
        if !self.is_strict {
            self.warn(peer, method, &[deviation]);
        }
        !self.is_strict
    }

    /// Logs the tolerated deviations, once per peer and leniency.
    pub(crate) fn warn(&self, peer: Option<&str>, method: &str, tolerated: &[Tolerated]) {
        for it in tolerated {
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
