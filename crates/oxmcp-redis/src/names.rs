//! Names of keys and channels. Ids and owners are secrets, so their hashes stand in them.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// How many bytes of a hash make a name.
const LENGTH: usize = 16;

/// The names of one prefix. It stands in braces, so that a script has all its keys in one place, also behind a proxy for clusters.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    tag: String,
}

impl Names {
    pub(crate) fn new(prefix: &str) -> Self {
        // A brace would end the tag.
        let prefix = prefix.replace('%', "%25");
        let prefix = prefix.replace('{', "%7B").replace('}', "%7D");
        Self {
            tag: format!("{{{prefix}}}"),
        }
    }

    /// A task.
    pub(crate) fn task(&self, id: &str) -> String {
        format!("{}:task:{}", self.tag, hash(&[b"task", id.as_bytes()]))
    }

    /// The tasks of an owner.
    pub(crate) fn owner(&self, owner: Option<&str>) -> String {
        let hash = match owner {
            Some(owner) => hash(&[b"owner", owner.as_bytes()]),
            None => hash(&[b"nobody"]),
        };
        format!("{}:owner:{hash}", self.tag)
    }

    /// All tasks, by when they expire.
    pub(crate) fn tasks(&self) -> String {
        format!("{}:tasks", self.tag)
    }

    /// The tasks that are leased and not over, by when their leases end.
    pub(crate) fn leases(&self) -> String {
        format!("{}:leases", self.tag)
    }

    /// The channel on which the key of each task is named that has changed.
    pub(crate) fn changes(&self) -> String {
        format!("{}:changes", self.tag)
    }
}

/// A part of the SHA-256 of parts that are told apart, in hexadecimal digits.
fn hash(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let mut name = String::with_capacity(2 * LENGTH);
    for byte in hash.finalize().iter().take(LENGTH) {
        // Writing to a string never fails.
        let _ = write!(name, "{byte:02x}");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_show_no_secret_and_are_in_one_place() {
        let names = Names::new("shop");
        let all = [
            names.task("secret"),
            names.owner(Some("secret")),
            names.owner(None),
            names.tasks(),
            names.leases(),
            names.changes(),
        ];
        for name in &all {
            assert!(
                name.starts_with("{shop}:") && !name.contains("secret"),
                "{name}"
            );
        }
        let task = all[0].rsplit(':').next().unwrap();
        assert_eq!(task.len(), 2 * LENGTH);
        assert_ne!(task, all[1].rsplit(':').next().unwrap());
        assert_ne!(names.owner(Some("")), names.owner(None));
    }

    #[test]
    fn a_prefix_cannot_end_its_tag() {
        assert_eq!(Names::new("a}{b%").tasks(), "{a%7D%7Bb%25}:tasks");
    }
}
