//! The eras of the servers that a client has connected to, so that they need not be discovered again.

use std::collections::VecDeque;

use oxmcp_protocol::Revision;

use crate::sync::Mutex;

/// The maximum number of known servers, more than a client is likely to have. The least recently used is evicted.
const MAX_SERVERS: usize = 256;

/// The era of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// The server did not know `server/discover`: the next session begins with `initialize`.
    Legacy,
    /// The server responded to `server/discover`, and this revision was negotiated.
    Modern(Revision),
}

impl Era {
    pub(crate) fn of(revision: Revision) -> Self {
        if revision.is_modern() {
            Self::Modern(revision)
        } else {
            Self::Legacy
        }
    }
}

/// The eras of servers, by the identities of their transports.
#[derive(Debug, Default)]
pub(crate) struct KnownServers(Mutex<VecDeque<(String, Era)>>);

impl KnownServers {
    pub(crate) fn get(&self, server: &str) -> Option<Era> {
        let mut known = self.0.lock();
        let index = known.iter().position(|(name, _)| name == server)?;
        let found = known.remove(index)?;
        let era = found.1;
        known.push_back(found);
        Some(era)
    }

    pub(crate) fn remember(&self, server: String, era: Era) {
        let mut known = self.0.lock();
        known.retain(|(name, _)| *name != server);
        if known.len() >= MAX_SERVERS {
            known.pop_front();
        }
        known.push_back((server, era));
    }

    pub(crate) fn forget(&self, server: &str) {
        self.0.lock().retain(|(name, _)| name != server);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latest_era_replaces_the_earlier_one() {
        let servers = KnownServers::default();
        assert_eq!(servers.get("a"), None);
        servers.remember("a".into(), Era::Legacy);
        servers.remember("a".into(), Era::Modern(Revision::LATEST));
        assert_eq!(servers.get("a"), Some(Era::Modern(Revision::LATEST)));
        servers.forget("a");
        assert_eq!(servers.get("a"), None);
    }

    #[test]
    fn known_servers_are_bounded_and_used_ones_stay() {
        let servers = KnownServers::default();
        for index in 0..MAX_SERVERS {
            servers.remember(index.to_string(), Era::Legacy);
        }
        assert_eq!(servers.get("0"), Some(Era::Legacy));
        servers.remember("one more".into(), Era::Legacy);
        assert_eq!(servers.get("0"), Some(Era::Legacy));
        assert_eq!(servers.get("1"), None);
        assert_eq!(servers.0.lock().len(), MAX_SERVERS);
    }
}
