//! The skills of one server: listing, getting and loading.

use std::{collections::HashSet, fmt, sync::Arc, time::Duration};

use oxmcp::{
    CacheMode, ClientSession,
    protocol::{PaginatedParams, Resource},
};
use serde_json::Value;
use tokio::{sync::Mutex, time::Instant};

use super::{
    approval::Approval,
    error::SkillError,
    list::{ListReader, SkillList},
    loaded::LoadedSkill,
    origin::Origin,
    requests::ListSkills,
    skill::Skill,
    verify::{check_frontmatter, check_total},
};
use crate::{
    methods::{ReadDirectory, ReadDirectoryParams},
    uri::is_within,
};

/// The maximum number of pages of a list.
const MAX_PAGES: usize = 1_000;

/// The maximum length of a cursor in bytes. The cursors of all pages are kept, to notice repetition.
const MAX_CURSOR: usize = 4096;

/// The maximum number of children of a directory.
const MAX_CHILDREN: usize = 10_000;

/// Adds the skills of its server to a session.
pub trait SessionExt {
    /// Returns the skills of the server, under a label that the host chooses. It must be unique among all servers: never use the name
    /// that the server gives itself.
    fn skills(&self, label: impl Into<String>) -> ServerSkills;
}

impl SessionExt for ClientSession {
    fn skills(&self, label: impl Into<String>) -> ServerSkills {
        let label: String = label.into();
        ServerSkills(Arc::new(Inner {
            origin: Arc::new(Origin {
                session: self.clone(),
                server: label.into(),
            }),
            listed: Mutex::default(),
        }))
    }
}

/// The skills of one server; made by [`SessionExt::skills`]. Cheap to clone; all clones share one list.
#[derive(Clone)]
pub struct ServerSkills(Arc<Inner>);

struct Inner {
    origin: Arc<Origin>,
    /// The last list, and the time until which it is fresh. It is locked during a request, so that callers share it.
    listed: Mutex<Option<(Arc<SkillList>, Instant)>>,
}

impl fmt::Debug for ServerSkills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSkills")
            .field("server", &self.0.origin.server)
            .finish_non_exhaustive()
    }
}

impl ServerSkills {
    /// Returns the host's label of the server.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.0.origin.server
    }

    /// Returns whether the server declares the extension. Requests the server's capabilities if they are not known yet.
    ///
    /// # Errors
    /// If that request fails.
    ///
    /// # Cancel safety
    /// As for a [`Call`](oxmcp::Call).
    pub async fn is_supported(&self) -> Result<bool, SkillError> {
        Ok(self.0.origin.declared().await?.is_some())
    }

    /// Lists the skills. Reads no file. A list that the server has declared fresh is returned again without a request.
    ///
    /// See [listing skills](https://github.com/modelcontextprotocol/ext-skills/blob/main/specification/stable/skills.mdx#listing-skills).
    ///
    /// # Errors
    /// If the server does not declare the extension, or a request fails. Unusable entries are not errors: see [`SkillList::rejected`].
    ///
    /// # Cancel safety
    /// As for a [`Call`](oxmcp::Call).
    pub async fn list(&self) -> Result<Arc<SkillList>, SkillError> {
        let mut listed = self.0.listed.lock().await;
        if let Some((list, until)) = &*listed
            && Instant::now() < *until
        {
            return Ok(Arc::clone(list));
        }
        *listed = None;
        let (list, ttl) = self.request_list().await?;
        let list = Arc::new(list);
        *listed = Some((Arc::clone(&list), Instant::now() + ttl));
        Ok(list)
    }

    /// Lists the skills with a new request, for when the server has notified the client that its resources have changed.
    ///
    /// # Errors
    /// As for [`list`](Self::list).
    ///
    /// # Cancel safety
    /// As for [`list`](Self::list).
    pub async fn refresh(&self) -> Result<Arc<SkillList>, SkillError> {
        *self.0.listed.lock().await = None;
        self.list().await
    }

    async fn request_list(&self) -> Result<(SkillList, Duration), SkillError> {
        self.0.origin.expect_declared().await?;
        let mut reader = ListReader::default();
        let mut ttl = Duration::MAX;
        let mut cursors = HashSet::new();
        let mut params = PaginatedParams::default();
        for _ in 0..MAX_PAGES {
            let page = self.0.origin.session.request::<ListSkills>(params).await?;
            ttl = ttl.min(page.ttl());
            if !reader.add(&self.0.origin.server, page.skills) {
                return Ok((reader.list, ttl));
            }
            match page.next_cursor.filter(|it| !it.is_empty()) {
                None => {
                    reader.list.is_complete = true;
                    return Ok((reader.list, ttl));
                }
                Some(cursor) if cursor.len() > MAX_CURSOR => break,
                Some(cursor) => {
                    params = PaginatedParams::at(&*cursor);
                    if !cursors.insert(cursor) {
                        break;
                    }
                }
            }
        }
        Ok((reader.list, ttl))
    }

    /// Gets one skill as it is now, even one that is not listed. Reads no file.
    ///
    /// See [getting a skill](https://github.com/modelcontextprotocol/ext-skills/blob/main/specification/stable/skills.mdx#getting-a-skill).
    ///
    /// # Errors
    /// If the server has no such skill or none at all, if its entry breaks a rule, or if the request fails.
    ///
    /// # Cancel safety
    /// As for a [`Call`](oxmcp::Call).
    pub async fn get(&self, uri: impl Into<String>) -> Result<Skill, SkillError> {
        self.0.origin.get(uri.into()).await
    }

    /// Loads a skill: reads its `SKILL.md`, and verifies it. Ask the user first.
    ///
    /// If the file does not match the entry, the entry is requested again. If it has changed, this is an error; if not, the file
    /// is read again.
    ///
    /// # Errors
    /// [`SkillError::Changed`] with the new entry, which the user must approve; an error if the file cannot be verified, if the
    /// skill is [dynamic](Skill::is_dynamic) or of another server, or if a request fails.
    ///
    /// # Cancel safety
    /// As for a [`Call`](oxmcp::Call).
    pub async fn load(&self, skill: &Skill) -> Result<LoadedSkill, SkillError> {
        self.check_origin(skill)?;
        if skill.is_dynamic() {
            let uri = skill.uri().to_owned();
            return Err(SkillError::Dynamic { uri });
        }
        let content = self.0.origin.read_verified(skill, skill.uri()).await?;
        Ok(LoadedSkill::new(&self.0.origin, skill.clone(), content))
    }

    /// Loads a skill that the user has approved before, if the approval still covers it.
    ///
    /// # Errors
    /// [`SkillError::Changed`] if the approval no longer covers the skill, and the errors of [`get`](Self::get) and [`load`](Self::load).
    ///
    /// # Cancel safety
    /// As for a [`Call`](oxmcp::Call).
    pub async fn load_approved(&self, approval: &Approval) -> Result<LoadedSkill, SkillError> {
        let id = approval.id();
        self.check_server(id.server(), id.uri())?;
        let skill = self.get(id.uri()).await?;
        match skill.approval().as_ref() == Some(approval) {
            true => self.load(&skill).await,
            false => Err(SkillError::Changed {
                skill: Box::new(skill),
            }),
        }
    }

    /// Loads a skill even if its content cannot be verified, because it is [dynamic](Skill::is_dynamic): only its frontmatter is
    /// compared with the entry. Such a skill can change at any time, so its approval cannot be stored. A skill that has digests
    /// is still verified.
    ///
    /// # Errors
    /// As for [`load`](Self::load).
    ///
    /// # Cancel safety
    /// As for a [`Call`](oxmcp::Call).
    pub async fn load_unverified(&self, skill: &Skill) -> Result<LoadedSkill, SkillError> {
        if !skill.is_dynamic() {
            return self.load(skill).await;
        }
        self.check_origin(skill)?;
        let content = self.0.origin.fetch(skill.uri(), CacheMode::Use).await?;
        check_total(skill, content.bytes().len())?;
        check_frontmatter(skill, content.bytes())?;
        Ok(LoadedSkill::new(&self.0.origin, skill.clone(), content))
    }

    /// Lists the children of a directory as it is now on the server. For a loaded skill, only the files of its entry
    /// count: see [`LoadedSkill::children`].
    ///
    /// See [reading
    /// directories](https://github.com/modelcontextprotocol/ext-skills/blob/main/specification/stable/skills.mdx#reading-directories).
    ///
    /// # Errors
    /// If the server does not declare that it lists directories, if a child is not in the directory, or if a request fails.
    ///
    /// # Cancel safety
    /// As for a [`Call`](oxmcp::Call).
    pub async fn read_directory(
        &self,
        uri: impl Into<String>,
    ) -> Result<Vec<Resource>, SkillError> {
        let uri = uri.into();
        let declared = self.0.origin.declared().await?;
        let reads = declared.and_then(|it| it.get("directoryRead"));
        if reads != Some(&Value::Bool(true)) {
            return Err(SkillError::NoDirectories { uri });
        }
        let mut children = Vec::new();
        let mut cursor = None;
        let mut seen = HashSet::new();
        loop {
            let params = ReadDirectoryParams {
                uri: uri.clone(),
                cursor,
            };
            let page = self
                .0
                .origin
                .session
                .request::<ReadDirectory>(params)
                .await?;
            children.extend(page.resources);
            let next = page.next_cursor.filter(|it| !it.as_str().is_empty());
            let Some(next) = next else { break };
            let next = next.as_str().to_owned();
            if children.len() > MAX_CHILDREN
                || next.len() > MAX_CURSOR
                || !seen.insert(next.clone())
                || seen.len() > MAX_PAGES
            {
                let problem = "the server lists too many children, or repeats pages";
                return Err(SkillError::Content { uri, problem });
            }
            cursor = Some(next);
        }
        let is_child = |child: &Resource| {
            let name = child.uri.get(uri.len() + 1..).unwrap_or_default();
            is_within(&uri, &child.uri) && !name.contains('/')
        };
        match children.iter().all(is_child) {
            true => Ok(children),
            false => {
                let problem = "the server lists a child that is not in the directory";
                Err(SkillError::Content { uri, problem })
            }
        }
    }

    fn check_origin(&self, skill: &Skill) -> Result<(), SkillError> {
        self.check_server(skill.id().server(), skill.uri())
    }

    fn check_server(&self, own: &str, uri: &str) -> Result<(), SkillError> {
        if own == self.server() {
            return Ok(());
        }
        Err(SkillError::OtherServer {
            uri: uri.to_owned(),
            own: own.to_owned(),
            asked: self.server().to_owned(),
        })
    }
}
