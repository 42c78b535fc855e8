//! Attribute `#[prompt]`.

/// Makes a prompt of an async function: its name, its doc comment and its parameters become the prompt's description for
/// clients.
///
/// The macro adds `name::prompt()`, which makes the [`Prompt`](struct@crate::Prompt) for
/// [`Server::prompt`](crate::Server::prompt). The rest is as with [`tool`](macro@crate::tool); the arguments come as strings,
/// so [`PromptInput`](crate::traits::PromptInput) lists the types that they may have.
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
