//! The pages that a server has sent the user to, and of which it may say later that the user is done there.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use crate::{error::Error, jsonrpc::ErrorCode, protocol::UrlElicitationRequiredData};

/// So many are remembered; beyond it the oldest is forgotten. Nobody visits as many at once.
const MOST: usize = 1024;

/// Longer ids, in bytes, are not remembered: nothing is said of their visits later. Servers make them of a UUID or the like.
const LONGEST: usize = 1024;

/// The ids of visits that are not complete yet.
#[derive(Debug, Default)]
pub(crate) struct Visits(Mutex<VecDeque<String>>);

impl Visits {
    /// The server sends the user to a page.
    pub(crate) fn begin(&self, id: &str) {
        if id.len() > LONGEST {
            return;
        }
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.iter().any(|known| known == id) {
            return;
        }
        if open.len() >= MOST {
            open.pop_front();
        }
        open.push_back(id.to_owned());
    }

    /// The same where the server has refused a call until the user was there.
    pub(crate) fn begin_all(&self, error: &Error) {
        if error.code() != ErrorCode::URL_ELICITATION_REQUIRED {
            return;
        }
        let data = error.data().map(|data| serde_json::from_str(data.get()));
        if let Some(Ok(UrlElicitationRequiredData { elicitations, .. })) = data {
            for id in elicitations
                .iter()
                .filter_map(|it| it.elicitation_id.as_ref())
            {
                self.begin(id);
            }
        }
    }

    /// The server says that a visit is complete. Returns whether there was one; of others, says the specification, nothing
    /// must come.
    pub(crate) fn complete(&self, id: &str) -> bool {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = open.iter().position(|known| known == id);
        place.is_some_and(|place| open.remove(place).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_of_visits_is_bounded() {
        let visits = Visits::default();
        for index in 0..=MOST {
            visits.begin(&index.to_string());
            visits.begin(&"n".repeat(LONGEST + 1 + index));
        }
        assert!(!visits.complete("0") && visits.complete("1") && !visits.complete("1"));
        let open = visits.0.lock().unwrap();
        assert_eq!(open.len(), MOST - 1);
        assert!(open.iter().all(|id| id.len() <= LONGEST));
    }
}
