//! The scenarios of hosts that load skills.

use std::error::Error;

use oxmcp::ClientSession;
use oxmcp_skills::host::{SessionExt, SkillError};

type Outcome = Result<(), Box<dyn Error>>;

/// Lists the skills, and reads none.
pub(crate) async fn list(session: &ClientSession) -> Outcome {
    let list = session.skills("suite").list().await?;
    match list.skills().is_empty() {
        true => Err("no skill is listed".into()),
        false => Ok(()),
    }
}

/// Loads the skills, and reads the files of those that can be verified, as a host would. The suite's server lies.
pub(crate) async fn load(session: &ClientSession) -> Outcome {
    let skills = session.skills("suite");
    for skill in skills.list().await?.skills() {
        match skills.load(skill).await {
            Ok(loaded) => {
                for file in skill.files() {
                    loaded.read(&file.uri).await?;
                }
            }
            Err(
                SkillError::Size { .. }
                | SkillError::Digest { .. }
                | SkillError::Frontmatter { .. },
            ) => {}
            Err(other) => return Err(other.into()),
        }
    }
    Ok(())
}
