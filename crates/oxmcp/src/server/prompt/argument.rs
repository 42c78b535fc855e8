use crate::{
    protocol::PromptArgument,
    server::completion::{Completer, IntoCompleter},
};

/// Says more about an argument of a [`Prompt`](crate::Prompt) than its type can; see
/// [`Prompt::argument`](crate::Prompt::argument).
#[derive(Debug, Default)]
#[must_use = "options are returned from the closure that they were given to"]
pub struct ArgumentOptions {
    title: Option<String>,
    description: Option<String>,
    pub(super) completer: Option<Completer>,
}

impl ArgumentOptions {
    /// A name for people to read.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// What it means, for people to read.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Has it completed while it is typed: by a list of strings, or by an async function of a
    /// [`Completing`](crate::Completing). It takes the place of what was inferred from an enum or a boolean.
    pub fn complete<Marker>(mut self, completer: impl IntoCompleter<Marker>) -> Self {
        self.completer = Some(completer.into_completer());
        self
    }

    /// Changes what was said so far.
    pub(super) fn apply(&mut self, argument: &mut PromptArgument) {
        if let Some(title) = self.title.take() {
            argument.title = Some(title);
        }
        if let Some(description) = self.description.take() {
            argument.description = Some(description);
        }
    }
}
