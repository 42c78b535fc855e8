//! Attribute `#[prompt]`.

/// Makes a prompt from an async function.
///
/// The name, the doc comment and the parameters of the function become the name, the description and the arguments of the
/// prompt. Next to the function, the attribute defines `name::prompt()`, which returns the [`Prompt`](struct@crate::Prompt) for
/// [`Server::prompt`](crate::Server::prompt). Everything else is the same as for [`tool`](macro@crate::tool). Arguments arrive
/// as strings; [`PromptInput`](crate::traits::PromptInput) lists the types that they may have.
///
/// ```
/// use oxmcp::{JsonSchema, Server, protocol::PromptMessage};
///
/// #[derive(Debug, serde::Deserialize, JsonSchema)]
/// #[serde(rename_all = "lowercase")]
/// enum Form { Haiku, Sonnet }
///
/// /// Write a poem.
/// #[oxmcp::prompt(title("A poem"))]
/// async fn poem(
///     /// what it is about
///     topic: String,
///     form: Option<Form>,
/// ) -> PromptMessage {
///     let form = form.unwrap_or(Form::Haiku);
///     PromptMessage::user(format!("Write a {form:?} about {topic}."))
/// }
///
/// let server = Server::new("writer", "1.0.0").prompt(poem::prompt());
/// # let _ = server;
/// ```
pub use oxmcp_macros::prompt;
