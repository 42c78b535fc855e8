//! Prompts of a server: adding and removing them.

use std::sync::Arc;

use oxmcp_protocol::CacheHint;

use super::{Prompt, RegisteredPrompt};
use crate::{
    error::Result,
    server::{registry::IntoFeature, server::Server},
    session::handler::state_scope::{OfState, StateScope},
};

impl Server {
    /// Adds a prompt. Names of prompts are unique in a server.
    ///
    /// Mistakes in it are reported by [`check`](Self::check), and when the server begins to serve.
    ///
    /// ```
    /// use oxmcp::{Prompt, Server};
    ///
    /// let server = Server::new("writer", "1.0.0")
    ///     .prompt(Prompt::new("haiku", "Write a haiku", || async { "Write a haiku." }));
    /// # let _ = server;
    /// ```
    #[must_use]
    #[doc(alias("prompts/list", "prompts/get"))]
    pub fn prompt(self, prompt: impl IntoFeature<Prompt>) -> Self {
        self.prompts([prompt.into_feature()])
    }

    /// Adds prompts, as [`prompt`](Self::prompt) does. Clients get them sorted by name. An empty list, `prompts([])`, tells
    /// clients that there may be prompts later.
    #[must_use]
    pub fn prompts(self, prompts: impl IntoIterator<Item = Prompt>) -> Self {
        self.extended(registered(prompts))
    }

    /// Adds prompts to a server that may be serving already, each in place of one with the same name. Connected clients
    /// are notified that the list has changed.
    ///
    /// # Errors
    /// If there is a mistake in a prompt. Then none of them is added.
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
        self.add(registered(prompts)?)
    }

    /// Removes prompts by name; names that are unknown are ignored. Connected clients are notified if the list has changed.
    pub fn remove_prompts<N: AsRef<str>>(&self, names: impl IntoIterator<Item = N>) {
        self.remove::<RegisteredPrompt>(names);
    }

    /// Sets the cache hint of the list of prompts: how long it stays fresh, and whether it may be shared. If some prompts are
    /// [for some callers only](Prompt::visible_to), the list is private, whatever the hint says.
    /// See [caching](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching).
    #[must_use]
    pub fn cache_prompts(self, hint: CacheHint) -> Self {
        self.with(|features| features.prompts.cache = hint)
    }
}

impl<State: Clone + Send + Sync + 'static> StateScope<Server, State> {
    /// Adds a prompt: a [`Prompt`], or a function such as `query::prompt` that makes one of the state. See [`Server::prompt`].
    pub fn prompt<Marker>(&self, prompt: impl OfState<Prompt, State, Marker>) -> &Self {
        self.role()
            .build(|server| server.prompt(prompt.of_state(self.state())));
        self
    }

    /// Adds prompts, as [`prompt`](Self::prompt) does.
    pub fn prompts<Marker, T: OfState<Prompt, State, Marker>>(
        &self,
        prompts: impl IntoIterator<Item = T>,
    ) -> &Self {
        for prompt in prompts {
            self.prompt(prompt);
        }
        self
    }
}

fn registered(prompts: impl IntoIterator<Item = Prompt>) -> Result<Vec<Arc<RegisteredPrompt>>> {
    prompts.into_iter().map(RegisteredPrompt::new).collect()
}
