//! Entries of skills, as `skills/list` and `skills/get` return them.

use oxmcp::protocol::JsonObject;
use serde::{Deserialize, Serialize, Serializer};

use crate::digest::Digest;

/// The maximum number of files of a skill, its `SKILL.md` included, that every host accepts.
///
/// See [limits](https://github.com/modelcontextprotocol/ext-skills/blob/main/specification/stable/skills.mdx#limits).
pub const MAX_FILES: usize = 512;

/// The maximum total size of the files of a skill in bytes, that every host accepts.
///
/// See [limits](https://github.com/modelcontextprotocol/ext-skills/blob/main/specification/stable/skills.mdx#limits).
pub const MAX_TOTAL_BYTES: u64 = 16 << 20;

/// A skill's entry: the URI and the frontmatter of its `SKILL.md`, and all files.
///
/// See [skill entries](https://github.com/modelcontextprotocol/ext-skills/blob/main/specification/stable/skills.mdx#skill-entries).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SkillEntry {
    /// The URI of the `SKILL.md`.
    pub uri: String,
    /// The frontmatter of the `SKILL.md`, with all fields that its author wrote.
    pub frontmatter: JsonObject,
    /// The files.
    pub resources: SkillResources,
}

/// The files of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkillResources {
    /// All files, each once, the `SKILL.md` included.
    Listed(Vec<SkillResource>),
    /// The server generates the content, so that no digests can be given.
    Dynamic,
}

impl Serialize for SkillResources {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Listed(files) => files.serialize(serializer),
            Self::Dynamic => serializer.serialize_str("dynamic"),
        }
    }
}

/// A file of a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SkillResource {
    /// The URI, for `resources/read`.
    pub uri: String,
    /// The digest of the file's bytes.
    pub digest: Digest,
    /// The size of the file in bytes.
    pub size: u64,
}
