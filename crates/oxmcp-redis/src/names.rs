//! Names of keys and channels. IDs and owners are secrets, so the names contain only their hashes.

use oxmcp::store::hashed;

/// The names under one prefix. The keys that a script needs together have the same hash tag (the text in braces), so that they are
/// on one node, also behind a cluster proxy: the keys of all tasks, and those of one session.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    prefix: String,
    /// The prefix in braces.
    tag: String,
}

impl Names {
    pub(crate) fn new(prefix: &str) -> Self {
        // A brace would end the tag.
        let prefix = prefix.replace('%', "%25");
        let prefix = prefix.replace('{', "%7B").replace('}', "%7D");
        Self {
            tag: format!("{{{prefix}}}"),
            prefix,
        }
    }

    /// The key of a task.
    pub(crate) fn task(&self, id: &str) -> String {
        format!("{}:task:{}", self.tag, hashed(&format!("task {id}")))
    }

    /// The key of the tasks of an owner.
    pub(crate) fn owner(&self, owner: Option<&str>) -> String {
        let owner = owner.map_or_else(|| "nobody".to_owned(), |owner| format!("owner {owner}"));
        format!("{}:owner:{}", self.tag, hashed(&owner))
    }

    /// The key of all tasks, by their expiry.
    pub(crate) fn tasks(&self) -> String {
        format!("{}:tasks", self.tag)
    }

    /// The key of the tasks that are leased and not over, by the end of their leases.
    pub(crate) fn leases(&self) -> String {
        format!("{}:leases", self.tag)
    }

    /// The key of a fact that nodes compare, by its name.
    pub(crate) fn fact(&self, name: &str) -> String {
        format!("{}:fact:{}", self.tag, hashed(name))
    }

    /// The key of all sessions, by their expiry.
    pub(crate) fn sessions(&self) -> String {
        format!("{}:sessions", self.tag)
    }

    /// The key of the sessions of a principal, by their expiry.
    pub(crate) fn principal(&self, name: &str) -> String {
        let hash = hashed(&format!("principal {name}"));
        format!("{}:principal:{hash}", self.tag)
    }

    /// The hash of a session ID, as it occurs in names.
    pub(crate) fn session_hash(id: &str) -> String {
        hashed(&["session ", id].concat())
    }

    /// The names of one session.
    pub(crate) fn of_session(&self, id: &str) -> SessionNames {
        let hash = Self::session_hash(id);
        SessionNames(["{", &self.prefix, ":", &hash, "}"].concat())
    }

    /// The channel on which the keys of changed data are published.
    pub(crate) fn changes(&self) -> String {
        format!("{}:changes", self.tag)
    }

    /// The channel of a topic of the bus.
    pub(crate) fn topic(&self, topic: &str) -> String {
        format!("{}:bus:{topic}", self.tag)
    }
}

/// The names of one session, by their common prefix.
pub(crate) struct SessionNames(String);

impl SessionNames {
    /// The key of the session's record.
    pub(crate) fn record(&self) -> String {
        self.name(":session", "")
    }

    /// The key of the state of the session's streams.
    pub(crate) fn streams(&self) -> String {
        self.name(":streams", "")
    }

    /// The key of the events of a stream.
    pub(crate) fn events(&self, stream: &str) -> String {
        self.name(":events:", stream)
    }

    fn name(&self, kind: &str, rest: &str) -> String {
        [&self.0, kind, rest].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_names_hide_secrets_and_share_a_slot() {
        let names = Names::new("shop");
        let session = names.of_session("secret");
        let record = session.record();
        let place = record.strip_suffix("session").unwrap();
        assert!(
            place.starts_with("{shop:") && place.ends_with("}:"),
            "{place}"
        );
        for name in [session.streams(), session.events("get")] {
            assert!(name.starts_with(place), "{name}");
        }
        let all = [
            names.task("secret"),
            names.owner(Some("secret")),
            names.owner(None),
            names.tasks(),
            names.leases(),
            names.changes(),
            names.sessions(),
            names.principal("secret"),
        ];
        for name in &all {
            assert!(
                name.starts_with("{shop}:") && !name.contains("secret"),
                "{name}"
            );
        }
        let task = all[0].rsplit(':').next().unwrap();
        assert_eq!(task.len(), 32);
        assert_ne!(task, all[1].rsplit(':').next().unwrap());
        assert_ne!(names.owner(Some("")), names.owner(None));
    }

    #[test]
    fn prefix_cannot_close_its_hash_tag() {
        assert_eq!(Names::new("a}{b%").tasks(), "{a%7D%7Bb%25}:tasks");
    }
}
