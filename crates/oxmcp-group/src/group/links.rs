//! The servers of resources that results referred to, and that no server lists.

use std::collections::{HashMap, VecDeque};

use super::lists::MAX_URI;

/// The maximum number of URIs. The oldest are forgotten.
const MAX_LINKS: usize = 1024;

/// The server that has shown a URI first.
#[derive(Debug, Default)]
pub(super) struct Links {
    servers: HashMap<String, usize>,
    order: VecDeque<String>,
}

impl Links {
    pub(super) fn get(&self, uri: &str) -> Option<usize> {
        self.servers.get(uri).copied()
    }

    /// Notes that a server has shown a URI. Returns the server to which the URI belongs: the first that has shown it.
    pub(super) fn note(&mut self, server: usize, uri: &str) -> usize {
        if let Some(first) = self.get(uri) {
            return first;
        }
        if uri.len() <= MAX_URI {
            if self.order.len() >= MAX_LINKS
                && let Some(oldest) = self.order.pop_front()
            {
                self.servers.remove(&oldest);
            }
            self.order.push_back(uri.to_owned());
            self.servers.insert(uri.to_owned(), server);
        }
        server
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_bounded_and_keep_their_server() {
        let mut links = Links::default();
        assert_eq!(links.note(1, "x:0"), 1);
        assert_eq!(links.note(2, "x:0"), 1, "the first server keeps it");
        for index in 1..=MAX_LINKS {
            links.note(2, &format!("x:{index}"));
        }
        assert_eq!(links.get("x:0"), None, "the oldest is forgotten");
        assert_eq!(links.get("x:1"), Some(2));
        assert_eq!(links.note(3, &"x".repeat(MAX_URI + 1)), 3);
        assert_eq!(links.order.len(), MAX_LINKS);
    }
}
