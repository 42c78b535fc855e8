//! Methods of a server to add and remove prompts.

use std::sync::Arc;

use oxmcp_protocol::CacheHint;

use super::{Prompt, RegisteredPrompt};
use crate::{
    error::Result,
    server::{registry::IntoFeature, server::Server},
    session::handler::state_scope::{OfState, StateScope},
};

impl Server {
    /// Adds a prompt. The names of a server's prompts must be unique.
    ///
    /// Mistakes in the prompt are reported by [`check`](Self::check), and when the server begins to serve.
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

    /// Adds prompts, like [`prompt`](Self::prompt). Clients list them sorted by name. `prompts([])` declares the capability
    /// without any prompts, so that they can be added later.
    #[must_use]
    pub fn prompts(self, prompts: impl IntoIterator<Item = Prompt>) -> Self {
        self.extended(registered(prompts))
    }

    /// Adds prompts to a server that may be running, and notifies connected clients. Replaces prompts with the same names.
    ///
    /// # Errors
    /// If a prompt has a mistake. Then no prompt is added.
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
    /// assert!(error.to_string().contains("the field \"lines\" cannot be read from a string"));
    /// # Ok::<(), oxmcp::Error>(())
    /// ```
    pub fn add_prompts(&self, prompts: impl IntoIterator<Item = Prompt>) -> Result<()> {
        self.add(registered(prompts)?)
    }

    /// Removes prompts by name, and notifies connected clients of the change. Unknown names are ignored.
    pub fn remove_prompts<N: AsRef<str>>(&self, names: impl IntoIterator<Item = N>) {
        self.remove::<RegisteredPrompt>(names);
    }

    /// Returns the names of all prompts, also of those that only some callers see.
    #[must_use]
    pub fn prompt_names(&self) -> Vec<String> {
        self.ids::<RegisteredPrompt>()
    }

    /// Sets the cache hint of the listing of prompts: how long it stays fresh, and whether it may be shared. If some prompts are
    /// [visible only to some callers](Prompt::visible_to), the listing is private, regardless of the hint.
    /// See [caching](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching).
    #[must_use]
    pub fn cache_prompts(self, hint: CacheHint) -> Self {
        self.with(|features| features.prompts.cache = hint)
    }
}

impl<State: Clone + Send + Sync + 'static> StateScope<Server, State> {
    /// Adds a prompt: a [`Prompt`], or a function like `query::prompt` that makes one from the state. See [`Server::prompt`].
    pub fn prompt<Marker>(&self, prompt: impl OfState<Prompt, State, Marker>) -> &Self {
        self.role()
            .build(|server| server.prompt(prompt.of_state(self.state())));
        self
    }

    /// Adds prompts, like [`prompt`](Self::prompt).
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
