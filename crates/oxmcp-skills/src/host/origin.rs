//! A server that skills come from: the requests to it, and the verification of what it sends.

use std::sync::Arc;

use bytes::Bytes;
use oxmcp::{CacheMode, ClientSession, FeatureKind, protocol::ResourceBody};
use serde_json::Value;

use super::{
    content::SkillContent,
    error::SkillError,
    requests::{GetSkill, GetSkillParams},
    skill::Skill,
    verify::{check_content, check_frontmatter},
};
use crate::{ID, entry::SkillResource};

/// See the [module](self).
pub(super) struct Origin {
    pub(super) session: ClientSession,
    /// The host's label of the server.
    pub(super) server: Arc<str>,
}

impl Origin {
    /// The settings of the extension that the server declares.
    pub(super) async fn declared(&self) -> Result<Option<&Value>, SkillError> {
        let session = &self.session;
        // The extension depends on resources, and this obtains the capabilities.
        session.offers(FeatureKind::Resources).await?;
        let extensions = session.server_capabilities().extensions.as_ref();
        let settings = extensions.and_then(|all| all.get(ID));
        Ok(settings.filter(|it| it.is_object()))
    }

    pub(super) async fn expect_declared(&self) -> Result<(), SkillError> {
        let server = || self.server.to_string();
        match self.declared().await? {
            Some(_) => Ok(()),
            None => Err(SkillError::Unsupported { server: server() }),
        }
    }

    /// Gets the entry of a skill as it is now.
    pub(super) async fn get(&self, uri: String) -> Result<Skill, SkillError> {
        self.expect_declared().await?;
        let params = GetSkillParams { uri: uri.clone() };
        let entry = self.session.request::<GetSkill>(params).await?.skill;
        match Skill::of(&self.server, entry) {
            Ok(skill) if skill.uri() == uri => Ok(skill),
            Ok(other) => {
                let problem = format!("it is the entry of {:?}", other.uri());
                Err(SkillError::InvalidEntry { uri, problem })
            }
            Err(problem) => Err(SkillError::InvalidEntry { uri, problem }),
        }
    }

    /// Reads a file of the entry of a skill, and verifies it.
    pub(super) async fn read_verified(
        &self,
        skill: &Skill,
        uri: &str,
    ) -> Result<SkillContent, SkillError> {
        let Some(file) = skill.file(uri) else {
            return Err(SkillError::Unlisted {
                skill: skill.uri().to_owned(),
                file: uri.to_owned(),
            });
        };
        let failure = match self.read_once(skill, file, CacheMode::Use).await {
            Err(SkillError::Call(error)) if !error.is_protocol() => return Err(error.into()),
            Err(failure) => failure,
            content => return content,
        };
        // The file may have been changed or removed since the entry was sent.
        let Ok(fresh) = self.get(skill.uri().to_owned()).await else {
            return Err(failure);
        };
        if fresh != *skill {
            return Err(SkillError::Changed {
                skill: Box::new(fresh),
            });
        }
        // The client may have had an older content in its cache.
        self.read_once(skill, file, CacheMode::Refresh).await
    }

    async fn read_once(
        &self,
        skill: &Skill,
        file: &SkillResource,
        mode: CacheMode,
    ) -> Result<SkillContent, SkillError> {
        let content = self.fetch(&file.uri, mode).await?;
        check_content(file, content.bytes())?;
        if file.uri == skill.uri() {
            check_frontmatter(skill, content.bytes())?;
        }
        Ok(content)
    }

    /// Reads a file of the server, which is not verified yet.
    pub(super) async fn fetch(
        &self,
        uri: &str,
        mode: CacheMode,
    ) -> Result<SkillContent, SkillError> {
        let read = self.session.read_resource(uri).cache(mode).await?;
        let mut all = read.contents.into_iter().filter(|it| it.uri == uri);
        let (Some(contents), None) = (all.next(), all.next()) else {
            return Err(SkillError::Content {
                uri: uri.to_owned(),
                problem: "the server did not send exactly one content item for this URI",
            });
        };
        let bytes = match contents.body {
            ResourceBody::Text(text) => Bytes::from(text),
            ResourceBody::Blob(blob) => blob.into_bytes(),
            _ => Bytes::new(),
        };
        Ok(SkillContent::new(uri, bytes, contents.mime_type))
    }
}
