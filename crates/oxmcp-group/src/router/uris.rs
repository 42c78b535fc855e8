//! The URIs of resources and templates, as the group shows them.

use std::{borrow::Cow, collections::HashMap};

use super::distinct::{Candidate, distinct};

/// The user part that marks the host form of a URI without an authority, such as `urn:isbn:1`.
const OPAQUE: &str = "opaque@";

/// The maximum length of a host: that of a label of a domain name.
const MAX_HOST: usize = 63;

/// The hosts that stand for servers in URIs.
///
/// The host form of a URI has the server's host before the rest: `file:///notes` of the server `disk` is `file://disk//notes`, and
/// `urn:isbn:1` is `urn://opaque@disk/isbn:1`. It can be reversed without a table of URIs, so that URIs from templates are
/// routed, too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    hosts: Vec<String>,
    servers: HashMap<String, usize>,
}

impl Hosts {
    /// Creates the hosts of servers with these labels.
    #[must_use]
    pub fn new<S: AsRef<str>>(labels: &[S]) -> Self {
        let host = |label: &str| {
            let accepted = |it: char| if it.is_ascii_alphanumeric() { it } else { '-' };
            label.to_ascii_lowercase().chars().map(accepted).collect()
        };
        let candidates: Vec<_> = labels
            .iter()
            .map(|label| Candidate {
                name: host(label.as_ref()),
                key: label.as_ref().to_owned(),
            })
            .collect();
        let hosts = distinct(&candidates, "-", MAX_HOST);
        let servers = hosts.iter().cloned().zip(0..).collect();
        Self { hosts, servers }
    }

    /// Returns the host form of a server's URI or URI template. `None` if it has no scheme.
    #[must_use]
    pub fn qualify(&self, server: usize, uri: &str) -> Option<String> {
        let host = self.hosts.get(server)?;
        let (scheme, rest) = split_scheme(uri)?;
        Some(match rest.strip_prefix("//") {
            Some(rest) => format!("{scheme}://{host}/{rest}"),
            None => format!("{scheme}://{OPAQUE}{host}/{rest}"),
        })
    }

    /// Returns the server and the original of a URI in host form. `None` if it has no host of a server.
    #[must_use]
    pub fn resolve(&self, uri: &str) -> Option<(usize, String)> {
        let (scheme, rest) = split_scheme(uri)?;
        let (authority, rest) = rest.strip_prefix("//")?.split_once('/')?;
        Some(match authority.strip_prefix(OPAQUE) {
            Some(host) => (*self.servers.get(host)?, format!("{scheme}:{rest}")),
            None => (*self.servers.get(authority)?, format!("{scheme}://{rest}")),
        })
    }
}

fn split_scheme(uri: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = uri.split_once(':')?;
    let is_scheme = scheme.starts_with(|it: char| it.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || b"+-.".contains(&it));
    is_scheme.then_some((scheme, rest))
}

/// The table of the URIs, or of the URI templates, that several servers have listed.
///
/// A URI is shown as it is, unless two servers list it: then each is shown in host form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UriTable {
    hosts: Hosts,
    targets: HashMap<String, (usize, String)>,
    /// For each server, the shown URIs by the original ones. `None` for a URI that cannot be shown.
    exposed: Vec<HashMap<String, Option<String>>>,
}

impl UriTable {
    /// Creates the table of servers, each with the URIs that it lists.
    #[must_use]
    pub fn new<S: AsRef<str>>(hosts: &Hosts, servers: &[Vec<S>]) -> Self {
        let mut entries: Vec<(usize, &str)> = Vec::new();
        for (server, uris) in servers.iter().enumerate() {
            entries.extend(uris.iter().map(|uri| (server, uri.as_ref())));
        }
        entries.sort_unstable();
        entries.dedup();
        let mut shown: Vec<Cow<'_, str>> = entries.iter().map(|(_, uri)| (*uri).into()).collect();
        // A host form that meets the URI of another server makes that one change its form, too. Host forms are distinct among each
        // other, so at most all have changed in the end.
        loop {
            let mut counts: HashMap<&str, usize> = HashMap::with_capacity(shown.len());
            for uri in &shown {
                *counts.entry(uri).or_default() += 1;
            }
            let is_shared = |uri: &str| counts.get(uri).is_some_and(|count| *count > 1);
            let shared: Vec<bool> = shown.iter().map(|uri| is_shared(uri)).collect();
            let mut is_changed = false;
            for (((server, uri), shown), is_shared) in entries.iter().zip(&mut shown).zip(shared) {
                if is_shared
                    && matches!(shown, Cow::Borrowed(_))
                    && let Some(qualified) = hosts.qualify(*server, uri)
                {
                    *shown = qualified.into();
                    is_changed = true;
                }
            }
            if !is_changed {
                break;
            }
        }
        let mut table = Self {
            hosts: hosts.clone(),
            targets: HashMap::with_capacity(entries.len()),
            exposed: vec![HashMap::new(); servers.len()],
        };
        for ((server, uri), shown) in entries.into_iter().zip(shown) {
            let shown = shown.into_owned();
            let is_free = !table.targets.contains_key(&shown);
            if let Some(exposed) = table.exposed.get_mut(server) {
                exposed.insert(uri.to_owned(), is_free.then(|| shown.clone()));
            }
            let target = (server, uri.to_owned());
            table.targets.entry(shown).or_insert(target);
        }
        table
    }

    /// Returns the shown form of a URI that a server lists. `None` if the server does not list it, or if it cannot be shown,
    /// because it has no scheme and another server lists the same.
    #[must_use]
    pub fn exposed(&self, server: usize, uri: &str) -> Option<&str> {
        self.exposed.get(server)?.get(uri)?.as_deref()
    }

    /// Returns the server and the original of a URI: of a listed one, or of one in host form.
    #[must_use]
    pub fn target(&self, uri: &str) -> Option<(usize, String)> {
        match self.targets.get(uri) {
            Some(target) => Some(target.clone()),
            None => self.hosts.resolve(uri),
        }
    }

    /// Returns the server and the original of a URI that was made from a listed template: the template whose text before its
    /// first variable is the longest beginning of the URI. `None` if templates of two servers fit equally well.
    #[must_use]
    pub fn target_by_template(&self, uri: &str) -> Option<(usize, String)> {
        let mut best: Option<(usize, usize)> = None;
        let mut is_tied = false;
        for (template, (server, _)) in &self.targets {
            let Some((beginning, _)) = template.split_once('{') else {
                continue;
            };
            if !uri.starts_with(beginning) {
                continue;
            }
            match best {
                Some((length, _)) if length > beginning.len() => {}
                Some((length, other)) if length == beginning.len() => is_tied |= other != *server,
                _ => (best, is_tied) = (Some((beginning.len(), *server)), false),
            }
        }
        let (_, server) = best.filter(|_| !is_tied)?;
        Some((server, uri.to_owned()))
    }

    /// Returns whether some server lists a URI, or it is the shown form of one.
    #[must_use]
    pub fn is_listed(&self, uri: &str) -> bool {
        self.targets.contains_key(uri) || self.exposed.iter().any(|uris| uris.contains_key(uri))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn host_forms_can_be_reversed() {
        let hosts = Hosts::new(&["Disk", "my.notes"]);
        for (server, uri, form) in [
            (0, "file:///notes", "file://disk//notes"),
            (1, "file:///notes", "file://my-notes//notes"),
            (
                0,
                "https://example.com/a?b#c",
                "https://disk/example.com/a?b#c",
            ),
            (0, "urn:isbn:1", "urn://opaque@disk/isbn:1"),
            (1, "note:", "note://opaque@my-notes/"),
            (0, "memo://", "memo://disk/"),
            (1, "memo://{+path}", "memo://my-notes/{+path}"),
        ] {
            assert_eq!(hosts.qualify(server, uri).as_deref(), Some(form), "{uri}");
            assert_eq!(hosts.resolve(form), Some((server, uri.to_owned())));
        }
        assert_eq!(hosts.qualify(0, "no-scheme"), None);
        assert_eq!(hosts.resolve("file://elsewhere//notes"), None);
        assert_eq!(hosts.resolve("file:///notes"), None);
    }

    #[test]
    fn only_shared_uris_change() {
        let hosts = Hosts::new(&["a", "b"]);
        let lists = [vec!["x:1", "x:2"], vec!["x:2", "x:3"]];
        let table = UriTable::new(&hosts, &lists);
        assert_eq!(table.exposed(0, "x:1"), Some("x:1"));
        assert_eq!(table.exposed(0, "x:2"), Some("x://opaque@a/2"));
        assert_eq!(table.exposed(1, "x:2"), Some("x://opaque@b/2"));
        assert_eq!(table.target("x:3"), Some((1, "x:3".into())));
        assert_eq!(table.target("x:2"), None, "it would be one of two");
        assert_eq!(
            table.target("x://opaque@b/9"),
            Some((1, "x:9".into())),
            "from a template"
        );
    }

    // A hostile server lists the URI that a resource of another server will get.
    #[test]
    fn no_server_can_take_a_host_form() {
        let hosts = Hosts::new(&["a", "b", "evil"]);
        let lists = [vec!["x:1"], vec!["x:1"], vec!["x://opaque@a/1"]];
        let table = UriTable::new(&hosts, &lists);
        assert_eq!(table.target("x://opaque@a/1"), Some((0, "x:1".into())));
        let forged = table.exposed(2, "x://opaque@a/1").unwrap();
        assert_eq!(forged, "x://evil/opaque@a/1");
        assert_eq!(table.target(forged), Some((2, "x://opaque@a/1".into())));
    }

    #[test]
    fn longest_beginning_of_a_template_decides() {
        let hosts = Hosts::new(&["a", "b"]);
        let lists = [
            vec!["x://{+path}", "y://{id}"],
            vec!["x://doc/{id}", "y://{id}", "plain"],
        ];
        let table = UriTable::new(&hosts, &lists);
        let server = |uri: &str| table.target_by_template(uri).map(|(server, _)| server);
        assert_eq!(server("x://other"), Some(0));
        assert_eq!(server("x://doc/1"), Some(1));
        assert_eq!(
            server("y://1"),
            None,
            "both servers have it, and show it in host form"
        );
        assert_eq!(table.target("y://b/1"), Some((1, "y://1".into())));
        assert_eq!(server("plain"), None);
        let tied = UriTable::new(&hosts, &[vec!["x://{a}"], vec!["x://{b}"]]);
        assert_eq!(tied.target_by_template("x://1"), None);
    }

    #[test]
    fn uris_without_scheme_have_one_owner() {
        let table = UriTable::new(&Hosts::new(&["a", "b"]), &[vec!["n"], vec!["n"]]);
        assert_eq!(table.exposed(0, "n"), Some("n"));
        assert_eq!(table.exposed(1, "n"), None);
        assert_eq!(table.target("n"), Some((0, "n".into())));
    }

    proptest! {
        #[test]
        fn every_uri_is_routed_to_its_owner(
            lists in prop::collection::vec(prop::collection::vec("x:[a1]?|x://(opaque@)?[ab]/[x1:/]{0,3}", 0..6), 0..4),
        ) {
            let labels: Vec<_> = ["a", "b", "A", "c"].into_iter().take(lists.len()).collect();
            let hosts = Hosts::new(&labels);
            let table = UriTable::new(&hosts, &lists);
            for (server, uris) in lists.iter().enumerate() {
                for uri in uris {
                    let shown = table.exposed(server, uri).unwrap();
                    prop_assert_eq!(table.target(shown), Some((server, uri.clone())));
                    let qualified = hosts.qualify(server, uri).unwrap();
                    prop_assert_eq!(hosts.resolve(&qualified), Some((server, uri.clone())));
                }
            }
        }
    }
}
