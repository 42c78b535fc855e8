//! What a client remembers of servers, so that it need not find it out again.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::protocol::Revision;

/// More servers than that are hardly talked to by one client. The one that was asked for longest ago gives way.
const KEPT: usize = 256;

/// Which rules a server was found to speak by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// It did not know `server/discover`: the next session begins with `initialize`.
    Legacy,
    /// It answered `server/discover`, and this revision was agreed on.
    Modern(Revision),
}

/// The verdicts on servers, by their transport's identity.
#[derive(Debug, Default)]
pub(crate) struct Verdicts(Mutex<VecDeque<(String, Era)>>);

impl Verdicts {
    pub(crate) fn get(&self, server: &str) -> Option<Era> {
        let mut kept = self.lock();
        let index = kept.iter().position(|(name, _)| name == server)?;
        let found = kept.remove(index)?;
        let era = found.1;
        kept.push_back(found);
        Some(era)
    }

    pub(crate) fn remember(&self, server: String, era: Era) {
        let mut kept = self.lock();
        kept.retain(|(name, _)| *name != server);
        if kept.len() >= KEPT {
            kept.pop_front();
        }
        kept.push_back((server, era));
    }

    pub(crate) fn forget(&self, server: &str) {
        self.lock().retain(|(name, _)| name != server);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(String, Era)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w14_the_newest_verdict_counts() {
        let verdicts = Verdicts::default();
        assert_eq!(verdicts.get("a"), None);
        verdicts.remember("a".into(), Era::Legacy);
        verdicts.remember("a".into(), Era::Modern(Revision::LATEST));
        assert_eq!(verdicts.get("a"), Some(Era::Modern(Revision::LATEST)));
        verdicts.forget("a");
        assert_eq!(verdicts.get("a"), None);
    }

    #[test]
    fn w14_verdicts_are_bounded_and_the_ones_in_use_stay() {
        let verdicts = Verdicts::default();
        for index in 0..KEPT {
            verdicts.remember(index.to_string(), Era::Legacy);
        }
        assert_eq!(verdicts.get("0"), Some(Era::Legacy));
        verdicts.remember("one more".into(), Era::Legacy);
        assert_eq!(verdicts.get("0"), Some(Era::Legacy));
        assert_eq!(verdicts.get("1"), None);
        assert_eq!(verdicts.lock().len(), KEPT);
    }
}
