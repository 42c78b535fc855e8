//! The user's approval of a skill.

use serde::{Deserialize, Serialize};

use super::id::SkillId;
use crate::{digest::Digest, entry::SkillResource};

/// A user's approval of a skill, bound to all files that it had: their URIs and digests. It can be stored, and is void as soon
/// as a file is changed, added or removed. It does not cover skills within the skill.
///
/// [`Skill::approval`](super::Skill::approval) makes one, and
/// [`ServerSkills::load_approved`](super::ServerSkills::load_approved) loads the skill if the approval still covers it.
///
/// See [content-bound
/// approval](https://github.com/modelcontextprotocol/ext-skills/blob/main/specification/stable/skills.mdx#security-considerations).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Approval {
    skill: SkillId,
    /// The digest of all files' URIs and digests.
    files: Digest,
}

impl Approval {
    pub(super) fn of(skill: &SkillId, files: &[SkillResource]) -> Self {
        let mut files: Vec<_> = files
            .iter()
            .map(|file| (&*file.uri, file.digest.to_string()))
            .collect();
        files.sort_unstable();
        let mut text = b"oxmcp-skills approval 1".to_vec();
        let mut add = |part: &str| {
            // The lengths keep two different sets from having the same text.
            text.extend_from_slice(&(part.len() as u64).to_be_bytes());
            text.extend_from_slice(part.as_bytes());
        };
        add(skill.server());
        add(skill.uri());
        for (uri, digest) in &files {
            add(uri);
            add(digest);
        }
        Self {
            skill: skill.clone(),
            files: Digest::of(&text),
        }
    }

    /// Returns the identity of the skill.
    #[must_use]
    pub fn id(&self) -> &SkillId {
        &self.skill
    }
}
