//! The error of a host's requests for skills.

use std::fmt;

use oxmcp::Error;

use super::skill::Skill;

/// The reason why a skill, or a file of it, cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum SkillError {
    /// The server does not declare the extension.
    Unsupported {
        /// The host's label of the server.
        server: String,
    },
    /// The server does not declare that it lists directories.
    NoDirectories {
        /// The URI of the directory.
        uri: String,
    },
    /// The server has sent an entry that breaks a rule.
    InvalidEntry {
        /// The URI of the skill.
        uri: String,
        /// The rule that it breaks.
        problem: String,
    },
    /// The skill belongs to another server.
    OtherServer {
        /// The URI of the skill.
        uri: String,
        /// The host's label of the server of the skill.
        own: String,
        /// The host's label of the server that was asked.
        asked: String,
    },
    /// The server generates the content of the skill, so that it cannot be verified.
    Dynamic {
        /// The URI of the skill.
        uri: String,
    },
    /// The skill has no such file.
    Unlisted {
        /// The URI of the skill.
        skill: String,
        /// The file that was asked for.
        file: String,
    },
    /// The size of a file does not match the entry.
    Size {
        /// The URI of the file.
        uri: String,
        /// The size in the entry.
        expected: u64,
        /// The size of the content.
        actual: u64,
    },
    /// The digest of a file does not match the entry.
    Digest {
        /// The URI of the file.
        uri: String,
    },
    /// The frontmatter of the `SKILL.md` does not match the entry, or cannot be read.
    Frontmatter {
        /// The URI of the skill.
        uri: String,
        /// The field that differs, or the problem.
        problem: String,
    },
    /// The skill has changed. It must not be used before the user has approved it again.
    Changed {
        /// The skill as it is now.
        skill: Box<Skill>,
    },
    /// The content exceeds the size limit of a skill.
    TooLarge {
        /// The URI of the skill.
        uri: String,
    },
    /// The server's response has no usable content.
    Content {
        /// The URI of the file or directory.
        uri: String,
        /// The problem.
        problem: &'static str,
    },
    /// The request failed.
    Call(Error),
}

impl fmt::Display for SkillError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported { server } => write!(
                f,
                "could not use skills: the server {server:?} does not declare the extension"
            ),
            Self::NoDirectories { uri } => write!(
                f,
                "could not read the directory {uri}: the server does not declare `directoryRead`; use the files of the entry"
            ),
            Self::InvalidEntry { uri, problem } => write!(
                f,
                "could not use the skill {uri}: invalid entry: {problem}; tell the author of the server"
            ),
            Self::OtherServer { uri, own, asked } => write!(
                f,
                "could not load the skill {uri}: it belongs to the server {own:?}, not to {asked:?}; load it from its own server"
            ),
            Self::Dynamic { uri } => write!(
                f,
                "could not load the skill {uri}: the server generates it, so it cannot be verified; ask the user, then use `load_unverified`"
            ),
            Self::Unlisted { skill, file } => write!(
                f,
                "could not read {file:?}: it is not a file of the skill {skill}; if the skill may have changed, get it again"
            ),
            Self::Size {
                uri,
                expected,
                actual,
            } => write!(
                f,
                "could not verify {uri}: it has {actual} bytes, but the entry says {expected}; do not use it"
            ),
            Self::Digest { uri } => write!(
                f,
                "could not verify {uri}: its digest does not match the entry; do not use it"
            ),
            Self::Frontmatter { uri, problem } => write!(
                f,
                "could not verify {uri}: its frontmatter does not match the entry: {problem}; do not use it"
            ),
            Self::Changed { skill } => write!(
                f,
                "could not use the skill {}: it has changed; ask the user to approve it again",
                skill.uri()
            ),
            Self::TooLarge { uri } => write!(
                f,
                "could not use the skill {uri}: it exceeds 16 MiB, the limit for a skill"
            ),
            Self::Content { uri, problem } => write!(f, "could not read {uri}: {problem}"),
            Self::Call(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SkillError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Call(error) => Some(error),
            _ => None,
        }
    }
}

impl From<Error> for SkillError {
    fn from(error: Error) -> Self {
        Self::Call(error)
    }
}
