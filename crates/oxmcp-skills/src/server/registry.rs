//! The skills of a server: the sources, the snapshot that is served, and reloading.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use oxmcp::{
    Error, Prompt, Result, Server,
    protocol::{CacheHint, CacheScope},
};

use super::{
    skills::Skills,
    snapshot::Snapshot,
    source::{Skill, Source},
};

/// The state of the extension on a server.
#[derive(Debug)]
pub(super) struct Registry {
    /// The sources, each with the skills that it had when it was last read. The lock also serializes reloads.
    sources: Mutex<Vec<(Skills, Source)>>,
    served: RwLock<Arc<Snapshot>>,
    settings: Mutex<Settings>,
    /// The first mistake while the server was built.
    problem: Mutex<Option<String>>,
}

/// The settings of all sources together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) page_size: usize,
    /// `None` before the first source.
    cache: Option<CacheHint>,
}

impl Settings {
    /// The hint of entries and files: stale at once and private, unless all sources say otherwise.
    pub(super) fn cache(&self) -> CacheHint {
        self.cache.unwrap_or_default()
    }

    fn add(&mut self, skills: &Skills) {
        self.page_size = self.page_size.min(skills.page_size);
        let own = skills.cache;
        self.cache = Some(self.cache.map_or(own, |others| {
            let ttl = others.ttl.min(own.ttl);
            match (others.scope, own.scope) {
                (CacheScope::Public, CacheScope::Public) => CacheHint::public(ttl),
                _ => CacheHint::private(ttl),
            }
        }));
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            sources: Mutex::default(),
            served: RwLock::default(),
            settings: Mutex::new(Settings {
                page_size: usize::MAX,
                cache: None,
            }),
            problem: Mutex::default(),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic of a source's function leaves nothing half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Registry {
    /// The skills that are served now.
    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        let served = self.served.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&served)
    }

    fn serve(&self, snapshot: Snapshot) -> Arc<Snapshot> {
        let snapshot = Arc::new(snapshot);
        let mut served = self.served.write().unwrap_or_else(PoisonError::into_inner);
        *served = Arc::clone(&snapshot);
        snapshot
    }

    pub(super) fn settings(&self) -> Settings {
        *lock(&self.settings)
    }

    /// The first mistake while the server was built.
    pub(super) fn problem(&self) -> Option<String> {
        lock(&self.problem).clone()
    }

    /// Adds a source to a server that is being built, and returns the server with the source's prompts and instructions.
    pub(super) fn add(self: &Arc<Self>, server: Server, skills: &Skills) -> Server {
        match self.try_add(skills) {
            Ok((snapshot, added)) => {
                let server = match skills.is_mentioned && !added.is_empty() {
                    true => server.append_instructions(sentence(&added)),
                    false => server,
                };
                match skills.are_prompts {
                    true => server.prompts(added.iter().map(|it| self.prompt(&snapshot, it))),
                    false => server,
                }
            }
            Err(problem) => {
                lock(&self.problem).get_or_insert(problem);
                server
            }
        }
    }

    fn try_add(&self, skills: &Skills) -> Result<(Arc<Snapshot>, Vec<Arc<Skill>>), String> {
        let mut sources = lock(&self.sources);
        let source = skills.load()?;
        let all = sources.iter().map(|(_, source)| source);
        let snapshot = Snapshot::of(all.chain([&source]))?;
        let added = source.skills.clone();
        sources.push((skills.clone(), source));
        lock(&self.settings).add(skills);
        Ok((self.serve(snapshot), added))
    }

    /// Reads all sources again, and serves their skills at once, or none of them.
    ///
    /// # Errors
    /// The first mistake. Then the skills stay as they were.
    pub(super) fn reload(self: &Arc<Self>, server: &Server) -> Result<()> {
        let mut sources = lock(&self.sources);
        let failed = |problem: String| {
            Error::misuse(format!(
                "could not reload the skills: {problem}; the skills are unchanged"
            ))
        };
        let read = sources.iter().map(|(skills, _)| skills.load());
        let read: Vec<_> = read.collect::<Result<_, _>>().map_err(failed)?;
        let snapshot = Snapshot::of(&read).map_err(failed)?;
        let are_prompts = |sources: &[(Skills, Source)]| {
            let all = sources.iter().filter(|(skills, _)| skills.are_prompts);
            all.flat_map(|(_, source)| source.skills.clone())
                .collect::<Vec<_>>()
        };
        let prompts_before = are_prompts(&sources);
        for ((_, source), read) in sources.iter_mut().zip(read) {
            *source = read;
        }
        let prompts = are_prompts(&sources);
        let before = self.snapshot();
        let now = self.serve(snapshot);
        self.update_prompts(server, (&before, &prompts_before), (&now, &prompts))?;
        for uri in before.changed(&now) {
            server.resource_updated(uri);
        }
        // The extension has no notification; hosts list the skills again when the resources have changed.
        if !before.has_same_entries(&now) {
            server.resources_changed();
        }
        Ok(())
    }

    fn update_prompts(
        self: &Arc<Self>,
        server: &Server,
        before: (&Snapshot, &[Arc<Skill>]),
        now: (&Snapshot, &[Arc<Skill>]),
    ) -> Result<()> {
        let described = |(snapshot, skills): (&Snapshot, &[Arc<Skill>])| {
            let skills = skills.iter();
            let pair = |it: &Arc<Skill>| (snapshot.prompt_name(it), it.description.clone());
            skills.map(pair).collect::<Vec<_>>()
        };
        let (old, new) = (described(before), described(now));
        let is_gone = |name: &&String| !new.iter().any(|(now, _)| now == *name);
        server.remove_prompts(old.iter().map(|(name, _)| name).filter(is_gone));
        let (snapshot, skills) = now;
        let changed = skills.iter().zip(&new).filter(|(_, it)| !old.contains(it));
        let changed: Vec<_> = changed
            .map(|(skill, _)| self.prompt(snapshot, skill))
            .collect();
        match changed.is_empty() {
            true => Ok(()),
            false => server.add_prompts(changed),
        }
    }

    /// The prompt of a skill, which always has the text that is served.
    fn prompt(self: &Arc<Self>, snapshot: &Snapshot, skill: &Skill) -> Prompt {
        let (registry, uri) = (Arc::clone(self), skill.entry.uri.clone());
        let name = snapshot.prompt_name(skill);
        Prompt::new(name, &*skill.description, move || {
            let file = registry.snapshot().file(&uri).cloned();
            let uri = uri.clone();
            async move {
                let file = file.ok_or_else(|| {
                    Error::invalid_params(format!("the skill {uri:?} is no longer served"))
                })?;
                let text = String::from_utf8_lossy(&file.bytes);
                Ok::<_, Error>(format!(
                    "{text}\n\nThe files that this skill names are resources; their URIs are relative to {uri}.\n"
                ))
            }
        })
    }
}

/// The sentence for the instructions of the server.
fn sentence(skills: &[Arc<Skill>]) -> String {
    let named = skills
        .iter()
        .map(|it| format!("\"{}\" ({})", it.name, it.entry.uri));
    let named: Vec<_> = named.collect();
    format!(
        "This server has skills, which are instructions for tasks. Load the skill that fits before you begin a task: {}.",
        named.join(", ")
    )
}
