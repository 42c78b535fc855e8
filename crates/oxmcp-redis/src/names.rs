//! Names of keys and channels. Ids and owners are secrets, so their hashes stand in them.

use oxmcp::store::hashed;

/// The names of one prefix. What a script needs together has the same words in braces, so that it is in one place, also behind a
/// proxy for clusters: all tasks, and all of one session.
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

    /// A task.
    pub(crate) fn task(&self, id: &str) -> String {
        format!("{}:task:{}", self.tag, hashed(&format!("task {id}")))
    }

    /// The tasks of an owner.
    pub(crate) fn owner(&self, owner: Option<&str>) -> String {
        let owner = owner.map_or_else(|| "nobody".to_owned(), |owner| format!("owner {owner}"));
        format!("{}:owner:{}", self.tag, hashed(&owner))
    }

    /// All tasks, by when they expire.
    pub(crate) fn tasks(&self) -> String {
        format!("{}:tasks", self.tag)
    }

    /// The tasks that are leased and not over, by when their leases end.
    pub(crate) fn leases(&self) -> String {
        format!("{}:leases", self.tag)
    }

    /// What nodes have told of themselves, by its name.
    pub(crate) fn fact(&self, name: &str) -> String {
        format!("{}:fact:{}", self.tag, hashed(name))
    }

    /// All sessions, by when they expire.
    pub(crate) fn sessions(&self) -> String {
        format!("{}:sessions", self.tag)
    }

    /// The sessions of a principal, by when they expire.
    pub(crate) fn principal(&self, name: &str) -> String {
        let hash = hashed(&format!("principal {name}"));
        format!("{}:principal:{hash}", self.tag)
    }

    /// A session among others.
    pub(crate) fn session_hash(id: &str) -> String {
        hashed(&["session ", id].concat())
    }

    /// The names of one session.
    pub(crate) fn of_session(&self, id: &str) -> SessionNames {
        let hash = Self::session_hash(id);
        SessionNames(["{", &self.prefix, ":", &hash, "}"].concat())
    }

    /// The channel on which the key is named of what has changed.
    pub(crate) fn changes(&self) -> String {
        format!("{}:changes", self.tag)
    }

    /// The channel of a topic of the bus.
    pub(crate) fn topic(&self, topic: &str) -> String {
        format!("{}:bus:{topic}", self.tag)
    }
}

/// The names of one session, by what they have in common.
pub(crate) struct SessionNames(String);

impl SessionNames {
    /// The record of the session.
    pub(crate) fn record(&self) -> String {
        self.name(":session", "")
    }

    /// What is known of its streams.
    pub(crate) fn streams(&self) -> String {
        self.name(":streams", "")
    }

    /// The events of a stream.
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
    fn names_show_no_secret_and_are_in_one_place() {
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
    fn a_prefix_cannot_end_its_tag() {
        assert_eq!(Names::new("a}{b%").tasks(), "{a%7D%7Bb%25}:tasks");
    }
}
