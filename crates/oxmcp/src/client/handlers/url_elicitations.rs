//! The URL elicitations of a session that are not complete yet.

use std::collections::VecDeque;

use oxmcp_protocol::{ErrorCode, UrlElicitationRequiredData};

use crate::{error::Error, sync::Mutex};

/// The number of ids that are kept; beyond it the oldest is evicted. No user visits as many URLs at once.
const MAX_OPEN: usize = 1024;

/// The longest id that is kept, in bytes. Servers use a UUID or the like; the completion of longer ids is ignored.
const MAX_ID_BYTES: usize = 1024;

/// The ids of the elicitations that a server may report as complete later.
#[derive(Debug, Default)]
pub(crate) struct UrlElicitations(Mutex<VecDeque<String>>);

impl UrlElicitations {
    /// Adds the elicitation of a request.
    pub(crate) fn insert(&self, id: &str) {
        if id.len() > MAX_ID_BYTES {
            return;
        }
        let mut open = self.0.lock();
        if open.iter().any(|known| known == id) {
            return;
        }
        if open.len() >= MAX_OPEN {
            open.pop_front();
        }
        open.push_back(id.to_owned());
    }

    /// Adds the elicitations of an error: the server refuses the call until the user has visited their URLs.
    pub(crate) fn insert_required(&self, error: &Error) {
        if error.code() != ErrorCode::URL_ELICITATION_REQUIRED {
            return;
        }
        let data = error.data().map(|data| serde_json::from_str(data.get()));
        if let Some(Ok(UrlElicitationRequiredData { elicitations, .. })) = data {
            for id in elicitations
                .iter()
                .filter_map(|it| it.elicitation_id.as_ref())
            {
                self.insert(id);
            }
        }
    }

    /// Removes an elicitation that the server reports as complete. Returns whether it was known: by the specification,
    /// others are ignored.
    pub(crate) fn complete(&self, id: &str) -> bool {
        let mut open = self.0.lock();
        let place = open.iter().position(|known| known == id);
        place.is_some_and(|place| open.remove(place).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_elicitations_are_bounded() {
        let elicitations = UrlElicitations::default();
        for index in 0..=MAX_OPEN {
            elicitations.insert(&index.to_string());
            elicitations.insert(&"n".repeat(MAX_ID_BYTES + 1 + index));
        }
        assert!(
            !elicitations.complete("0")
                && elicitations.complete("1")
                && !elicitations.complete("1")
        );
        let open = elicitations.0.lock();
        assert_eq!(open.len(), MAX_OPEN - 1);
        assert!(open.iter().all(|id| id.len() <= MAX_ID_BYTES));
    }
}
