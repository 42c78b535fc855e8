//! What prompts are given.

use crate::protocol::OrderedMap;

/// What a prompt can be given: pairs of strings, as an array, a `Vec` or a map of them, or `()` where it takes nothing.
///
/// You do not need to worry about `Marker`: it tells the two apart.
#[diagnostic::on_unimplemented(
    message = "a prompt cannot be given `{Self}`",
    label = "neither pairs of strings nor `()`",
    note = "give pairs, `[(\"topic\", \"tea\")]` or a map of strings, or `()` where the prompt takes nothing"
)]
pub trait IntoPromptArguments<Marker> {
    /// What is sent.
    #[doc(hidden)]
    fn into_prompt_arguments(self) -> Option<OrderedMap<String>>;
}

impl IntoPromptArguments<()> for () {
    fn into_prompt_arguments(self) -> Option<OrderedMap<String>> {
        None
    }
}

impl<I, K, V> IntoPromptArguments<(K, V)> for I
where
    I: IntoIterator<Item = (K, V)>,
    K: Into<String>,
    V: Into<String>,
{
    fn into_prompt_arguments(self) -> Option<OrderedMap<String>> {
        let pairs = self.into_iter();
        Some(
            pairs
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    }
}
