//! The prompts of a server: adding them, removing them, getting them.

use std::sync::Arc;

use super::{Prompt, RegisteredPrompt};
use crate::{
    Result,
    json::Text,
    protocol::{CacheHint, ListPromptsResult, Prompt as Definition, SubscriptionFilter, method},
    server::{
        Server,
        ask::Asks,
        by_name::Named,
        completion::{Completers, Completes},
        features::Features,
        registry::{Feature, Registry, Visibility},
    },
    session::{RequestContext, Work},
};

impl Feature for RegisteredPrompt {
    type Definition = Definition;
    type Page = ListPromptsResult;

    fn id(&self) -> &str {
        &self.definition.name
    }

    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn visibility(&self) -> Option<&Visibility> {
        self.visibility.as_ref()
    }

    fn changed() -> SubscriptionFilter {
        SubscriptionFilter::default().with_prompts_list_changed(true)
    }

    fn registry(features: &Features) -> &Registry<Self> {
        &features.prompts
    }

    fn registry_mut(features: &mut Features) -> &mut Registry<Self> {
        &mut features.prompts
    }
}

impl Completes for RegisteredPrompt {
    const KIND: &'static str = "prompt";

    fn completers(&self) -> &Completers {
        &self.completers
    }
}

impl Named for RegisteredPrompt {
    type Request = method::GetPrompt;
    const KIND: &'static str = "prompt";

    fn asks(&self) -> Asks {
        self.asks
    }

    fn work(self: &Arc<Self>, context: RequestContext, arguments: Text<'_>) -> Work {
        self.get(context, arguments)
    }
}

impl Server {
    /// Adds a prompt, in place of one with the same name.
    ///
    /// What is wrong with it is reported by [`run`](Self::run) and [`connect`](Self::connect).
    ///
    /// ```
    /// use oxmcp::{Prompt, Server};
    ///
    /// let server = Server::new("writer", "1.0.0")
    ///     .prompt(Prompt::new("haiku", "Write a haiku", || async { "Write a haiku." }));
    /// # let _ = server;
    /// ```
    #[must_use]
    pub fn prompt(self, prompt: Prompt) -> Self {
        self.prompts([prompt])
    }

    /// Adds prompts, as [`prompt`](Self::prompt) does. With none, `prompts([])` tells clients that there may be prompts
    /// later.
    #[must_use]
    pub fn prompts(self, prompts: impl IntoIterator<Item = Prompt>) -> Self {
        self.note(self.add_prompts(prompts));
        self
    }

    /// Adds prompts to a server that may be serving already, each in place of one with the same name. Connected clients
    /// are told that the list has changed.
    ///
    /// # Errors
    /// Where something is wrong with a prompt. Then none of them is added.
    ///
    /// ```
    /// use oxmcp::{Prompt, Server};
    ///
    /// let server = Server::new("writer", "1.0.0");
    /// // … and later, while it serves:
    /// server.add_prompts([Prompt::new("haiku", "Write a haiku", || async { "Write a haiku." })])?;
    /// server.remove_prompts(["haiku"]);
    ///
    /// #[derive(serde::Deserialize, oxmcp::JsonSchema)]
    /// struct Poem { lines: Vec<String> }
    /// let wrong = Prompt::new("poem", "Improve a poem", |poem: Poem| async move { poem.lines.join("\n") });
    /// let error = server.add_prompts([wrong]).unwrap_err();
    /// assert!(error.to_string().contains("the field \"lines\" is an array"));
    /// # Ok::<(), oxmcp::Error>(())
    /// ```
    pub fn add_prompts(&self, prompts: impl IntoIterator<Item = Prompt>) -> Result<()> {
        let prompts = prompts
            .into_iter()
            .map(RegisteredPrompt::new)
            .collect::<Result<Vec<_>>>()?;
        self.offer(prompts);
        Ok(())
    }

    /// Removes prompts by name; names that are unknown are ignored. Connected clients are told if the list has changed.
    pub fn remove_prompts<N: AsRef<str>>(&self, names: impl IntoIterator<Item = N>) {
        self.withdraw::<RegisteredPrompt>(names);
    }

    /// What clients are told of the list of prompts: how long it stays fresh, and who may share it. Where some prompts
    /// are [not for everybody](Prompt::visible_to), nobody may share it, whatever is said here.
    /// See [caching](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching).
    #[must_use]
    pub fn cache_prompts(self, hint: CacheHint) -> Self {
        self.change(|features| features.prompts.cache = hint);
        self
    }
}
