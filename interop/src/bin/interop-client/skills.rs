//! Tasks about the skills of a server.

use oxmcp::ClientSession;
use oxmcp_skills::host::{SessionExt, SkillError};

use crate::call::{Outcome, ensure};

/// Finds a listed skill, loads it, and reads all its files, one of which has a text.
pub(crate) async fn load(session: &ClientSession, uri: &str, file: &str, text: &str) -> Outcome {
    let skills = session.skills("interop");
    let list = skills.list().await?;
    ensure(
        list.rejected().is_empty(),
        &format!("{:?}", list.rejected()),
    )?;
    let skill = list.skills().iter().find(|skill| skill.uri() == uri);
    let skill = skill.ok_or_else(|| format!("saw {list:?}"))?;
    ensure(
        *skill == skills.get(uri).await?,
        "another entry from `skills/get`",
    )?;
    let approval = skill.approval().ok_or("no digests")?;
    let loaded = skills.load_approved(&approval).await?;
    for file in skill.files() {
        loaded.read(&file.uri).await?;
    }
    let content = loaded.read(file).await?;
    ensure(
        content.text().is_some_and(|it| it.contains(text)),
        &format!("{content:?}"),
    )
}

/// Loads a listed skill, which must fail with this error.
pub(crate) async fn refuse(session: &ClientSession, uri: &str, error: &str) -> Outcome {
    let skills = session.skills("interop");
    let list = skills.list().await?;
    let skill = list.skills().iter().find(|skill| skill.uri() == uri);
    let skill = skill.ok_or_else(|| format!("saw {list:?}"))?;
    let seen = match skills.load(skill).await {
        Ok(_) => "no error".to_owned(),
        Err(SkillError::Size { .. }) => "size".to_owned(),
        Err(SkillError::Digest { .. }) => "digest".to_owned(),
        Err(SkillError::Frontmatter { .. }) => "frontmatter".to_owned(),
        Err(other) => other.to_string(),
    };
    ensure(seen == error, &seen)
}
