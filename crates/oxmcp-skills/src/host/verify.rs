//! Verification of content against the entry of its skill.

use super::{error::SkillError, skill::Skill};
use crate::{
    digest::Digest,
    entry::{MAX_TOTAL_BYTES, SkillResource},
    frontmatter,
};

/// Checks that the bytes read of a dynamic skill are within the limit.
pub(super) fn check_total(skill: &Skill, bytes: usize) -> Result<(), SkillError> {
    if bytes as u64 <= MAX_TOTAL_BYTES {
        return Ok(());
    }
    let uri = skill.uri().to_owned();
    Err(SkillError::TooLarge { uri })
}

/// Checks the size and the digest of a file.
pub(super) fn check_content(file: &SkillResource, bytes: &[u8]) -> Result<(), SkillError> {
    let uri = || file.uri.clone();
    let actual = bytes.len() as u64;
    if actual != file.size {
        return Err(SkillError::Size {
            uri: uri(),
            expected: file.size,
            actual,
        });
    }
    match Digest::of(bytes) == file.digest {
        true => Ok(()),
        false => Err(SkillError::Digest { uri: uri() }),
    }
}

/// Checks the frontmatter of a `SKILL.md`, field by field.
pub(super) fn check_frontmatter(skill: &Skill, bytes: &[u8]) -> Result<(), SkillError> {
    let failed = |problem: String| SkillError::Frontmatter {
        uri: skill.uri().to_owned(),
        problem,
    };
    let text = std::str::from_utf8(bytes).map_err(|_| failed("it is not UTF-8".to_owned()))?;
    let read = frontmatter::read(text).map_err(failed)?;
    let difference = frontmatter::first_difference(&read, &skill.entry().frontmatter);
    match difference {
        None => Ok(()),
        Some(field) => Err(failed(format!("`{field}` differs"))),
    }
}
