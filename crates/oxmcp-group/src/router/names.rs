//! The names of tools and prompts, as the group shows them.

use std::collections::HashMap;

use super::distinct::{Candidate, MAX_DIGITS, distinct};

/// The maximum length of a separator.
const MAX_SEPARATOR: usize = 8;

/// When names get the name of their server as a prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Prefix {
    /// Always. A server that comes or goes then changes no name of another.
    #[default]
    Always,
    /// Where two servers list the same name. Names are shorter, but change when another server lists the same name.
    OnClash,
}

/// The rules by which names are made: the prefix, the separator, the maximum length.
///
/// Characters that hosts refuse in names become `_`: all but ASCII letters, digits, `_` and `-`. A name that would be too long
/// ends in a hash of the server and the original name. So do two names that would be the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Naming {
    prefix: Prefix,
    separator: String,
    max_length: usize,
    is_unchanged: bool,
}

impl Default for Naming {
    fn default() -> Self {
        Self {
            prefix: Prefix::Always,
            separator: "_".into(),
            max_length: 64,
            is_unchanged: false,
        }
    }
}

impl Naming {
    /// Leaves the names of a single server as they are. The names of several servers get prefixes nevertheless.
    #[must_use]
    pub fn unchanged() -> Self {
        Self {
            is_unchanged: true,
            ..Self::default()
        }
    }

    /// Sets when names get a prefix. Default: always.
    #[must_use]
    pub fn prefix(mut self, prefix: Prefix) -> Self {
        self.prefix = prefix;
        self
    }

    /// Sets the text between the name of the server and the original name. Default: `_`. Characters that hosts refuse in names
    /// become `_`, and only the first eight are used.
    #[must_use]
    pub fn separator(mut self, separator: impl AsRef<str>) -> Self {
        self.separator = accepted(separator.as_ref());
        self.separator.truncate(MAX_SEPARATOR);
        self
    }

    /// Sets the maximum length of a name. Default: 64, which all hosts accept. At least 48, so that a name has space for a hash.
    #[must_use]
    pub fn max_length(mut self, length: usize) -> Self {
        self.max_length = length.max(MAX_DIGITS + MAX_SEPARATOR + 8);
        self
    }
}

/// A name with all characters replaced that hosts refuse.
fn accepted(name: &str) -> String {
    let is_accepted = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    name.chars()
        .map(|it| if is_accepted(it) { it } else { '_' })
        .collect()
}

/// The table of the names that several servers have listed.
///
/// Servers are numbered by their position in the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameTable {
    targets: HashMap<String, (usize, String)>,
    /// For each server, the exposed names by the original names.
    exposed: Vec<HashMap<String, String>>,
}

impl NameTable {
    /// Creates the table of servers, each with its label and the names that it lists. A name that a server lists twice counts
    /// once.
    #[must_use]
    pub fn new<S: AsRef<str>>(naming: &Naming, servers: &[(&str, Vec<S>)]) -> Self {
        if let (true, [(_, names)]) = (naming.is_unchanged, servers) {
            let names = names.iter().map(|it| it.as_ref().to_owned());
            let own: HashMap<String, String> = names.map(|it| (it.clone(), it)).collect();
            return Self {
                targets: own.keys().map(|it| (it.clone(), (0, it.clone()))).collect(),
                exposed: vec![own],
            };
        }
        let mut lists: Vec<Vec<&str>> = Vec::with_capacity(servers.len());
        for (_, names) in servers {
            let mut names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
            names.sort_unstable();
            names.dedup();
            lists.push(names);
        }
        // The number of servers with a name, as it would be exposed without a prefix.
        let mut counts: HashMap<String, (usize, usize)> = HashMap::new();
        for (server, names) in lists.iter().enumerate() {
            for name in names {
                let (last, count) = counts.entry(accepted(name)).or_insert((server, 1));
                if *last != server {
                    (*last, *count) = (server, *count + 1);
                }
            }
        }
        let mut owners = Vec::new();
        let mut candidates = Vec::new();
        for (server, ((label, _), names)) in servers.iter().zip(&lists).enumerate() {
            for name in names {
                let short = accepted(name);
                let is_shared = counts.get(&short).is_some_and(|(_, count)| *count > 1);
                let is_prefixed = naming.prefix == Prefix::Always || is_shared || short.is_empty();
                owners.push((server, *name));
                candidates.push(Candidate {
                    name: if is_prefixed {
                        format!("{}{}{short}", accepted(label), naming.separator)
                    } else {
                        short
                    },
                    key: format!("{}:{label}{name}", label.len()),
                });
            }
        }
        let names = distinct(&candidates, &naming.separator, naming.max_length);
        let mut table = Self {
            targets: HashMap::with_capacity(names.len()),
            exposed: vec![HashMap::new(); servers.len()],
        };
        for ((server, original), name) in owners.into_iter().zip(names) {
            if let Some(exposed) = table.exposed.get_mut(server) {
                exposed.insert(original.to_owned(), name.clone());
            }
            table.targets.insert(name, (server, original.to_owned()));
        }
        table
    }

    /// Returns the server and the original name of an exposed name.
    #[must_use]
    pub fn target(&self, exposed: &str) -> Option<(usize, &str)> {
        let (server, original) = self.targets.get(exposed)?;
        Some((*server, original))
    }

    /// Returns the exposed name of a name that a server lists.
    #[must_use]
    pub fn exposed(&self, server: usize, original: &str) -> Option<&str> {
        Some(self.exposed.get(server)?.get(original)?)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn table(naming: &Naming, servers: &[(&str, &[&str])]) -> NameTable {
        let servers: Vec<_> = servers
            .iter()
            .map(|(label, it)| (*label, it.to_vec()))
            .collect();
        NameTable::new(naming, &servers)
    }

    fn exposed<'a>(table: &'a NameTable, server: usize, name: &str) -> &'a str {
        table.exposed(server, name).unwrap()
    }

    #[test]
    fn names_get_their_server_as_prefix() {
        let always = Naming::default();
        let clash = Naming::default().prefix(Prefix::OnClash);
        let dashed = Naming::default().separator("--");
        let servers: &[(&str, &[&str])] = &[("git", &["log", "read"]), ("my.fs", &["read"])];
        for (naming, expected) in [
            (&always, ["git_log", "git_read", "my_fs_read"]),
            (&clash, ["log", "git_read", "my_fs_read"]),
            (&dashed, ["git--log", "git--read", "my_fs--read"]),
        ] {
            let table = table(naming, servers);
            let found = [
                exposed(&table, 0, "log"),
                exposed(&table, 0, "read"),
                exposed(&table, 1, "read"),
            ];
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn equal_names_get_stable_suffixes() {
        let naming = Naming::default();
        let there = table(&naming, &[("a_b", &["c"]), ("a", &["b_c"])]);
        let (first, second) = (exposed(&there, 0, "c"), exposed(&there, 1, "b_c"));
        assert_eq!((first, second), ("a_b_c_e2c793e6", "a_b_c_4376f01a"));
        let back = table(&naming, &[("a", &["b_c"]), ("a_b", &["c"])]);
        assert_eq!(
            (exposed(&back, 1, "c"), exposed(&back, 0, "b_c")),
            (first, second)
        );
        assert_eq!(there.target(first), Some((0, "c")));
        assert_eq!(there.target(second), Some((1, "b_c")));
        assert_eq!(there.target("a_b_c"), None, "it would be one of two");
    }

    #[test]
    fn long_names_end_in_a_hash() {
        let (long, short) = ("x".repeat(70), "x".repeat(62));
        let table = table(&Naming::default(), &[("s", &[&long, &short])]);
        let shortened = exposed(&table, 0, &long);
        assert_eq!(shortened.len(), 64);
        assert!(shortened.starts_with("s_xxx"), "{shortened}");
        assert_eq!(exposed(&table, 0, &short), format!("s_{short}"));
        assert_eq!(table.target(shortened), Some((0, long.as_str())));
    }

    // A hostile server lists the name that a tool of another server will get.
    #[test]
    fn no_server_can_take_a_suffixed_name() {
        let naming = Naming::default();
        let before = table(&naming, &[("a_b", &["c"]), ("a", &["b_c"])]);
        let suffixed = exposed(&before, 0, "c").to_owned();
        let forged = suffixed.strip_prefix("a_").unwrap();
        let after = table(&naming, &[("a_b", &["c"]), ("a", &["b_c", forged])]);
        assert_ne!(after.target(&suffixed), Some((1, forged)));
        let all: HashSet<_> = [(0, "c"), (1, "b_c"), (1, forged)]
            .map(|(server, name)| exposed(&after, server, name))
            .into();
        assert_eq!(all.len(), 3);
    }

    proptest! {
        #[test]
        fn every_name_is_routed_to_its_owner(
            lists in prop::collection::vec(
                ("[ab_.é]{0,4}", prop::collection::vec("[ab_./é]{0,4}|[ab]{60,70}", 0..6)), 0..5
            ),
            on_clash: bool,
        ) {
            let mut lists = lists;
            lists.sort();
            lists.dedup_by(|a, b| a.0 == b.0);
            let prefix = if on_clash { Prefix::OnClash } else { Prefix::Always };
            let naming = Naming::default().prefix(prefix);
            let servers: Vec<_> = lists.iter().map(|(label, it)| (label.as_str(), it.clone())).collect();
            let table = NameTable::new(&naming, &servers);
            let reversed: Vec<_> = servers.iter().rev().cloned().collect();
            let mirrored = NameTable::new(&naming, &reversed);
            for (server, (_, names)) in servers.iter().enumerate() {
                for name in names {
                    let shown = table.exposed(server, name).unwrap();
                    prop_assert!((1..=64).contains(&shown.len()), "{}", shown);
                    prop_assert_eq!(&accepted(shown), shown);
                    prop_assert_eq!(table.target(shown), Some((server, name.as_str())));
                    let other = servers.len() - 1 - server;
                    prop_assert_eq!(mirrored.exposed(other, name), Some(shown));
                }
            }
        }
    }
}
