//! Completion handler: the argument that is being typed, and the functions that complete it.

use std::cmp::Reverse;

use oxmcp_protocol::{Completion, OrderedMap};

use crate::session::{connection::RequestContext, handler::traits::HandlerContext};

/// The argument that is being typed, the input of a [`Completer`](crate::Completer).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CompletionInput {
    /// The name of the argument.
    pub argument: String,
    /// The part of the value typed so far, which may be empty.
    pub value: String,
    /// The arguments that already have values. Clients of revision 2025-03-26 or earlier do not send them.
    pub arguments: OrderedMap<String>,
}

impl CompletionInput {
    /// Returns the value of another argument, if it has one.
    ///
    /// ```
    /// use oxmcp::CompletionInput;
    ///
    /// async fn frameworks(completing: CompletionInput) -> Vec<&'static str> {
    ///     match completing.resolved("language") {
    ///         Some("python") => vec!["django", "flask"],
    ///         Some("rust") => vec!["actix", "axum"],
    ///         _ => vec![],
    ///     }
    /// }
    /// # let _ = oxmcp::Completer::new(frameworks);
    /// ```
    #[must_use]
    pub fn resolved(&self, argument: &str) -> Option<&str> {
        self.arguments.get(argument).map(String::as_str)
    }

    /// Returns the candidates that begin with the typed value, ignoring case. Equal candidates come first, then those that match
    /// in case; otherwise they keep their order.
    ///
    /// ```
    /// use oxmcp::{Completer, CompletionInput};
    ///
    /// async fn all_users() -> Vec<String> {
    ///     // … ask the database …
    ///     # vec![]
    /// }
    ///
    /// let users = Completer::new(|completing: CompletionInput| async move {
    ///     completing.matching(all_users().await)
    /// });
    /// # let _ = users;
    /// ```
    pub fn matching<S: AsRef<str> + Into<String>>(
        &self,
        candidates: impl IntoIterator<Item = S>,
    ) -> Completion {
        let typed = self.value.to_lowercase();
        let candidates = candidates.into_iter().filter_map(|candidate| {
            let text = candidate.as_ref();
            let fits = text.to_lowercase().starts_with(&typed);
            let rank = (text == self.value, text.starts_with(&self.value));
            fits.then_some((Reverse(rank), candidate))
        });
        let mut found: Vec<_> = candidates.collect();
        found.sort_by_key(|(rank, _)| *rank);
        let total = found.len();
        let best = found.into_iter().take(Completion::MAX_VALUES);
        let mut completion = Completion::new(best.map(|(_, candidate)| candidate));
        completion.total = Some(total as u64);
        completion.has_more = total > completion.values.len();
        completion
    }
}

/// The arguments of a function that completes an argument: `(CompletionInput,)` or `(RequestContext, CompletionInput)`.
#[diagnostic::on_unimplemented(
    message = "a function that completes cannot take `{Self}`",
    label = "not `(CompletionInput)` or `(RequestContext, CompletionInput)`",
    note = "it is `async fn(CompletionInput) -> Output` or `async fn(RequestContext, CompletionInput) -> Output`, in this order",
    note = "shared state comes first: pass it with `s.with_state(handler)` in `Server::state(shared, |s| …)`, or with `oxmcp::with_state(shared, handler)`"
)]
pub trait CompleterArguments: Sized + 'static {
    /// Makes the arguments from a context and an input.
    #[doc(hidden)]
    fn of(context: RequestContext, completing: CompletionInput) -> Self;
}

impl CompleterArguments for (CompletionInput,) {
    fn of(_context: RequestContext, completing: CompletionInput) -> Self {
        (completing,)
    }
}

impl<Context: HandlerContext> CompleterArguments for (Context, CompletionInput) {
    fn of(context: RequestContext, completing: CompletionInput) -> Self {
        (Context::of(context), completing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matching(value: &str, candidates: &[&str]) -> Completion {
        let completing = CompletionInput {
            value: value.to_owned(),
            ..CompletionInput::default()
        };
        completing.matching(candidates.iter().copied())
    }

    #[test]
    fn best_matches_come_first() {
        let candidates = ["zebra", "Rust", "rustic", "trust", "rust", "RUSTY"];
        let found = matching("rust", &candidates);
        assert_eq!(found.values, ["rust", "rustic", "Rust", "RUSTY"]);
        assert_eq!((found.total, found.has_more), (Some(4), false));
        assert_eq!(matching("", &candidates).values, candidates);
        assert_eq!(matching("ÄR", &["ärger", "Ära"]).values, ["ärger", "Ära"]);
        assert!(matching("q", &candidates).values.is_empty());
    }

    #[test]
    fn completions_are_limited_but_report_their_total() {
        let names: Vec<_> = (0..101).map(|index| format!("n{index}")).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let found = matching("n", &names);
        assert_eq!(
            (found.values.len(), found.total, found.has_more),
            (100, Some(101), true)
        );
        let found = matching("n", &names[1..]);
        assert_eq!(
            (found.values.len(), found.total, found.has_more),
            (100, Some(100), false)
        );
    }
}
