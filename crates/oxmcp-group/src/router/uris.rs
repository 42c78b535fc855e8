//! The URIs of resources and templates, as the group shows them.

use std::{borrow::Cow, collections::HashMap};

use super::distinct::{Candidate, distinct};

/// The user part that marks the host form of a URI with an authority. Users of this name have no resources, so that a host form is
/// never the URI of a resource elsewhere.
const HIERARCHICAL: &str = "server@";

/// The user part that marks the host form of a URI without an authority, such as `urn:isbn:1`.
const OPAQUE: &str = "opaque@";

/// The maximum length of a host: that of a label of a domain name.
const MAX_HOST: usize = 63;

/// The hosts that stand for servers in URIs.
///
/// The host form of a URI has the server's host before the rest: `file:///notes` of the server `disk` is
/// `file://server@disk//notes`, and `urn:isbn:1` is `urn://opaque@disk/isbn:1`. It can be reversed without a table of URIs, so that
/// URIs from templates are routed, too. A URI that a server itself writes in this form is shown in the host form of that server.
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
            Some(rest) => format!("{scheme}://{HIERARCHICAL}{host}/{rest}"),
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
            None => {
                let host = authority.strip_prefix(HIERARCHICAL)?;
                (*self.servers.get(host)?, format!("{scheme}://{rest}"))
            }
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

/// The URIs and URI templates that a server lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedUris<'a> {
    /// The URIs of its resources.
    pub uris: Vec<&'a str>,
    /// Its URI templates.
    pub templates: Vec<&'a str>,
}

impl<'a> ListedUris<'a> {
    /// Creates the lists of a server.
    #[must_use]
    pub fn new(uris: Vec<&'a str>, templates: Vec<&'a str>) -> Self {
        Self { uris, templates }
    }
}

/// The table of the URIs and URI templates that several servers have listed.
///
/// A URI is shown as it is if no other server could have it: no other lists it, and no template of another begins like it. Else
/// it is shown in host form. So nothing that a server lists changes where a shown URI of another is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UriTable {
    hosts: Hosts,
    uris: Table,
    templates: Table,
    /// The beginnings of the templates that are shown as they are, with their servers, sorted. None begins like another.
    beginnings: Vec<(String, usize)>,
}

impl UriTable {
    /// Creates the table of servers, each with what it lists.
    #[must_use]
    pub fn new(hosts: &Hosts, servers: &[ListedUris<'_>]) -> Self {
        let mut entries = Vec::new();
        for (server, listed) in servers.iter().enumerate() {
            let entry = |uri, is_template| Entry::new(hosts, server, uri, is_template);
            entries.extend(listed.uris.iter().map(|uri| entry(*uri, false)));
            entries.extend(listed.templates.iter().map(|uri| entry(*uri, true)));
        }
        // A template comes before the URIs that begin like it, even before an equal one.
        entries.sort_unstable_by_key(|it| (it.beginning, !it.is_template, it.server, it.uri));
        entries.dedup_by_key(|it| (it.is_template, it.server, it.uri));
        mark_equal(&mut entries);
        mark_nested(&mut entries);
        let mut beginnings: Vec<(String, usize)> = Vec::new();
        for entry in entries
            .iter()
            .filter(|it| it.can_begin() && !it.is_qualified)
        {
            let is_new = beginnings
                .last()
                .is_none_or(|(last, _)| !entry.beginning.starts_with(last.as_str()));
            if is_new {
                beginnings.push((entry.beginning.to_owned(), entry.server));
            }
        }
        Self {
            hosts: hosts.clone(),
            uris: Table::new(
                hosts,
                servers.len(),
                entries.iter().filter(|it| !it.is_template),
            ),
            templates: Table::new(
                hosts,
                servers.len(),
                entries.iter().filter(|it| it.is_template),
            ),
            beginnings,
        }
    }

    /// Returns the shown form of a URI that a server lists. `None` if the server does not list it, or if it cannot be shown,
    /// because it has no scheme and another server lists the same.
    #[must_use]
    pub fn exposed(&self, server: usize, uri: &str) -> Option<&str> {
        self.uris.exposed(server, uri)
    }

    /// Returns the shown form of a URI template, as [`exposed`](Self::exposed) does for a URI.
    #[must_use]
    pub fn exposed_template(&self, server: usize, template: &str) -> Option<&str> {
        self.templates.exposed(server, template)
    }

    /// Returns the form in which to show a URI to which a result of a server refers. It is the URI itself only if it is read from
    /// that server, or from the web: an address on the web that nobody lists remains one that a browser can open.
    #[must_use]
    pub fn exposed_link<'a>(&'a self, server: usize, uri: &'a str) -> Cow<'a, str> {
        if let Some(shown) = self.exposed(server, uri) {
            return shown.into();
        }
        let is_web = uri.starts_with("https://") || uri.starts_with("http://");
        let stays = match self.target(uri) {
            Some((owner, original)) => owner == server && original == uri,
            None => is_web,
        };
        if stays {
            return uri.into();
        }
        let qualified = self.hosts.qualify(server, uri);
        qualified.map_or(Cow::Borrowed(uri), Cow::Owned)
    }

    /// Returns the server and the original of a shown URI: of a listed one, of one in host form, or of one that was made from a
    /// listed template.
    #[must_use]
    pub fn target(&self, uri: &str) -> Option<(usize, String)> {
        if let Some(target) = self.uris.targets.get(uri) {
            return Some(target.clone());
        }
        if let Some(target) = self.hosts.resolve(uri) {
            return Some(target);
        }
        // None begins like another, so that only the last that is not behind the URI can begin it.
        let behind = self
            .beginnings
            .partition_point(|(it, _)| it.as_str() <= uri);
        let (beginning, server) = self.beginnings.get(behind.checked_sub(1)?)?;
        uri.starts_with(beginning.as_str())
            .then(|| (*server, uri.to_owned()))
    }

    /// Returns the server and the original of a shown URI template.
    #[must_use]
    pub fn template_target(&self, template: &str) -> Option<(usize, String)> {
        self.templates.targets.get(template).cloned()
    }
}

/// The shown forms of URIs, or of templates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Table {
    targets: HashMap<String, (usize, String)>,
    /// For each server, the shown forms by the original ones. `None` for one that cannot be shown.
    exposed: Vec<HashMap<String, Option<String>>>,
}

impl Table {
    fn new<'a>(
        hosts: &Hosts,
        servers: usize,
        entries: impl Iterator<Item = &'a Entry<'a>>,
    ) -> Self {
        let mut table = Self {
            targets: HashMap::new(),
            exposed: vec![HashMap::new(); servers],
        };
        for entry in entries {
            let (server, uri) = (entry.server, entry.uri);
            let qualified = entry.is_qualified.then(|| hosts.qualify(server, uri));
            let shown = qualified.flatten().unwrap_or_else(|| uri.to_owned());
            let is_free = !table.targets.contains_key(&shown);
            if let Some(exposed) = table.exposed.get_mut(server) {
                exposed.insert(uri.to_owned(), is_free.then(|| shown.clone()));
            }
            let target = (server, uri.to_owned());
            table.targets.entry(shown).or_insert(target);
        }
        table
    }

    fn exposed(&self, server: usize, uri: &str) -> Option<&str> {
        self.exposed.get(server)?.get(uri)?.as_deref()
    }
}

/// A listed URI or template.
struct Entry<'a> {
    server: usize,
    uri: &'a str,
    is_template: bool,
    /// The text before the first variable of a template, or the whole URI.
    beginning: &'a str,
    /// Whether it is shown in host form.
    is_qualified: bool,
}

impl<'a> Entry<'a> {
    fn new(hosts: &Hosts, server: usize, uri: &'a str, is_template: bool) -> Self {
        let beginning = match uri.split_once('{') {
            Some((beginning, _)) if is_template => beginning,
            _ => uri,
        };
        Self {
            server,
            uri,
            is_template,
            beginning,
            // The form is reserved for the group, even if the server itself writes it.
            is_qualified: hosts.resolve(uri).is_some(),
        }
    }

    /// Whether it is a template by whose beginning URIs are routed. Without a scheme, it would begin those of all servers.
    fn can_begin(&self) -> bool {
        self.is_template && split_scheme(self.beginning).is_some()
    }
}

/// Marks the URIs that two servers list.
fn mark_equal(entries: &mut [Entry<'_>]) {
    let mut owners: HashMap<&str, (usize, bool)> = HashMap::new();
    for entry in entries.iter().filter(|it| !it.is_template) {
        let (owner, is_shared) = owners.entry(entry.uri).or_insert((entry.server, false));
        *is_shared |= *owner != entry.server;
    }
    for entry in entries.iter_mut().filter(|it| !it.is_template) {
        entry.is_qualified |= owners
            .get(entry.uri)
            .is_some_and(|(_, is_shared)| *is_shared);
    }
}

/// Marks what begins like a template of another server, and the templates of two servers of which one begins like the other.
/// The entries are sorted by their beginnings, templates first.
fn mark_nested(entries: &mut [Entry<'_>]) {
    /// A template that begins the current entry.
    struct Open {
        index: usize,
        server: usize,
        /// Whether the templates up to this one are of several servers. All are marked then.
        is_mixed: bool,
        is_marked: bool,
    }
    let mut chain: Vec<Open> = Vec::new();
    for index in 0..entries.len() {
        let (before, rest) = entries.split_at_mut(index);
        let Some(entry) = rest.first_mut() else {
            return;
        };
        let begins = |open: &Open| {
            let template = before.get(open.index);
            template.is_some_and(|it| entry.beginning.starts_with(it.beginning))
        };
        while chain.last().is_some_and(|it| !begins(it)) {
            chain.pop();
        }
        let last = chain.last();
        let is_mixed = last.is_some_and(|it| it.is_mixed || it.server != entry.server);
        entry.is_qualified |= is_mixed;
        if !entry.can_begin() {
            continue;
        }
        if is_mixed && last.is_some_and(|it| !it.is_mixed) {
            // All before a marked one are marked, too.
            for open in chain.iter_mut().rev().take_while(|it| !it.is_marked) {
                open.is_marked = true;
                if let Some(template) = before.get_mut(open.index) {
                    template.is_qualified = true;
                }
            }
        }
        chain.push(Open {
            index,
            server: entry.server,
            is_mixed,
            is_marked: is_mixed,
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn table(hosts: &Hosts, servers: &[(&[&'static str], &[&'static str])]) -> UriTable {
        let listed = |(uris, templates): &(&[&'static str], &[&'static str])| ListedUris {
            uris: uris.to_vec(),
            templates: templates.to_vec(),
        };
        let listed: Vec<_> = servers.iter().map(listed).collect();
        UriTable::new(hosts, &listed)
    }

    fn to(server: usize, uri: &str) -> Option<(usize, String)> {
        Some((server, uri.to_owned()))
    }

    #[test]
    fn host_forms_can_be_reversed() {
        let hosts = Hosts::new(&["Disk", "my.notes"]);
        for (server, uri, form) in [
            (0, "file:///notes", "file://server@disk//notes"),
            (1, "file:///notes", "file://server@my-notes//notes"),
            (
                0,
                "https://example.com/a?b#c",
                "https://server@disk/example.com/a?b#c",
            ),
            (0, "urn:isbn:1", "urn://opaque@disk/isbn:1"),
            (1, "note:", "note://opaque@my-notes/"),
            (0, "memo://", "memo://server@disk/"),
            (1, "memo://{+path}", "memo://server@my-notes/{+path}"),
        ] {
            assert_eq!(hosts.qualify(server, uri).as_deref(), Some(form), "{uri}");
            assert_eq!(hosts.resolve(form), Some((server, uri.to_owned())));
        }
        assert_eq!(hosts.qualify(0, "no-scheme"), None);
        assert_eq!(hosts.resolve("file://server@elsewhere//notes"), None);
        assert_eq!(hosts.resolve("file:///notes"), None);
    }

    #[test]
    fn authority_named_like_a_server_is_no_host_form() {
        let hosts = Hosts::new(&["disk", "web"]);
        assert_eq!(hosts.resolve("file://disk/notes"), None);
        let table = table(
            &hosts,
            &[(&[], &[]), (&["file://disk/notes"], &["x://disk/{id}"])],
        );
        assert_eq!(
            table.target("file://disk/notes"),
            to(1, "file://disk/notes")
        );
        assert_eq!(table.target("x://disk/7"), to(1, "x://disk/7"));
    }

    #[test]
    fn only_shared_uris_change() {
        let hosts = Hosts::new(&["a", "b"]);
        let table = table(&hosts, &[(&["x:1", "x:2"], &[]), (&["x:2", "x:3"], &[])]);
        assert_eq!(table.exposed(0, "x:1"), Some("x:1"));
        assert_eq!(table.exposed(0, "x:2"), Some("x://opaque@a/2"));
        assert_eq!(table.exposed(1, "x:2"), Some("x://opaque@b/2"));
        assert_eq!(table.target("x:3"), to(1, "x:3"));
        assert_eq!(table.target("x:2"), None, "it would be one of two");
        assert_eq!(
            table.target("x://opaque@b/9"),
            to(1, "x:9"),
            "from a template"
        );
    }

    // A hostile server lists the URI that a resource of another server will get.
    #[test]
    fn no_server_can_take_a_host_form() {
        let hosts = Hosts::new(&["a", "b", "evil"]);
        let forged = "x://opaque@a/1";
        let table = table(
            &hosts,
            &[(&["x:1"], &[]), (&["x:1"], &[]), (&[forged], &[forged])],
        );
        assert_eq!(table.target(forged), to(0, "x:1"));
        let shown = table.exposed(2, forged).unwrap();
        assert_eq!(shown, "x://server@evil/opaque@a/1");
        assert_eq!(table.target(shown), to(2, forged));
        assert_eq!(table.exposed_template(2, forged), Some(shown));
    }

    // A hostile server lists templates and URIs within those of another server.
    #[test]
    fn no_server_can_take_uris_of_templates() {
        let hosts = Hosts::new(&["a", "evil"]);
        let evil: (&[_], &[_]) = (&["x://7", "y://1"], &["z://doc/{id}", "{+all}", "w://{id}"]);
        let table = table(
            &hosts,
            &[
                (&[], &["x://{id}", "y://{id}", "z://{+path}", "w://{name}"]),
                evil,
            ],
        );
        assert_eq!(table.target("x://7"), to(0, "x://7"));
        assert_eq!(table.exposed(1, "x://7"), Some("x://server@evil/7"));
        for template in ["z://{+path}", "w://{name}"] {
            let shown = table.exposed_template(0, template).unwrap();
            assert!(shown.contains("server@a"), "{shown}");
        }
        assert_eq!(table.target("z://doc/1"), None, "it would be one of two");
        assert_eq!(table.target("z://server@a/doc/1"), to(0, "z://doc/1"));
        assert_eq!(table.target("none://1"), None);
        assert_eq!(
            table.template_target("w://server@a/{name}"),
            to(0, "w://{name}")
        );
    }

    #[test]
    fn templates_of_one_server_may_nest() {
        let hosts = Hosts::new(&["a", "b"]);
        let table = table(
            &hosts,
            &[
                (&["x://doc/1"], &["x://{+path}", "x://doc/{id}"]),
                (&["y:1"], &[]),
            ],
        );
        assert_eq!(table.exposed(0, "x://doc/1"), Some("x://doc/1"));
        for uri in ["x://doc/2", "x://", "x://e"] {
            assert_eq!(table.target(uri), to(0, uri));
        }
        assert_eq!(table.target("x:/"), None);
    }

    #[test]
    fn links_are_read_from_the_server_that_made_them() {
        let hosts = Hosts::new(&["a", "evil"]);
        let table = table(&hosts, &[(&["x:1"], &["t://{id}"]), (&["own:1"], &[])]);
        for (server, uri, shown) in [
            (0, "x:1", "x:1"),
            (1, "x:1", "x://opaque@evil/1"),
            (0, "t://1", "t://1"),
            (1, "t://1", "t://server@evil/1"),
            (1, "stray:1", "stray://opaque@evil/1"),
            (1, "x://server@a/1", "x://server@evil/server@a/1"),
        ] {
            assert_eq!(table.exposed_link(server, uri), shown, "{uri} of {server}");
            assert_eq!(table.target(shown), to(server, uri));
        }
        let page = "https://example.com/page";
        assert_eq!(table.exposed_link(1, page), page, "a browser opens it");
        assert_eq!(table.target(page), None);
    }

    #[test]
    fn uris_without_scheme_have_one_owner() {
        let table = table(&Hosts::new(&["a", "b"]), &[(&["n"], &[]), (&["n"], &[])]);
        assert_eq!(table.exposed(0, "n"), Some("n"));
        assert_eq!(table.exposed(1, "n"), None);
        assert_eq!(table.target("n"), to(0, "n"));
    }

    const URI: &str = "x:[a1]?|x://((server|opaque)@)?[ab]/[x1:/]{0,3}";
    const TEMPLATE: &str = "(x:[a1]?|x://((server|opaque)@)?[ab]/[x1:/]{0,3})\\{id\\}";

    proptest! {
        #[test]
        fn every_uri_is_routed_to_its_owner(
            lists in prop::collection::vec(
                (prop::collection::vec(URI, 0..6), prop::collection::vec(TEMPLATE, 0..4)), 0..4
            ),
            made in "[a1/]{0,3}",
        ) {
            let labels: Vec<_> = ["a", "b", "A", "c"].into_iter().take(lists.len()).collect();
            let hosts = Hosts::new(&labels);
            fn texts(list: &[String]) -> Vec<&str> {
                list.iter().map(String::as_str).collect()
            }
            let listed: Vec<_> = lists
                .iter()
                .map(|(uris, templates)| ListedUris { uris: texts(uris), templates: texts(templates) })
                .collect();
            let table = UriTable::new(&hosts, &listed);
            for (server, (uris, templates)) in lists.iter().enumerate() {
                for uri in uris {
                    let shown = table.exposed(server, uri).unwrap();
                    prop_assert_eq!(table.target(shown), Some((server, uri.clone())));
                    let qualified = hosts.qualify(server, uri).unwrap();
                    prop_assert_eq!(hosts.resolve(&qualified), Some((server, uri.clone())));
                    let linked = table.exposed_link(server, uri);
                    prop_assert_eq!(table.target(&linked), Some((server, uri.clone())));
                }
                for template in templates {
                    let shown = table.exposed_template(server, template).unwrap();
                    prop_assert_eq!(table.template_target(shown), Some((server, template.clone())));
                    // A URI that is made from the shown template is read from its server, unless it is a listed URI or a host form.
                    let (uri, original) = (shown.replace("{id}", &made), template.replace("{id}", &made));
                    let is_plain = shown == template && hosts.resolve(&uri).is_some();
                    if !is_plain {
                        prop_assert_eq!(table.target(&uri), Some((server, original)));
                    }
                }
            }
        }
    }
}
