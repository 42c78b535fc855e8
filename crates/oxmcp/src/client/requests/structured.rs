//! Reading the structured content of what tools return.

use serde::de::{DeserializeOwned, IntoDeserializer};

use crate::{
    client::requests::call::Call,
    error::{Error, Result},
    protocol::{CallToolResult, ContentBlock, method::CallTool},
};

impl Call<CallTool> {
    /// Makes the call, and reads the structured content of the result as `T`.
    ///
    /// A server that speaks a revision without structured content says the same as text, which is read instead: as
    /// JSON, or for a type that a string can stand for as it is.
    ///
    /// # Errors
    /// Besides those of the call: [`Error::is_tool_error`], with the tool's own words, where the tool failed; and where
    /// the result is not a `T`.
    ///
    /// # Cancel safety
    /// As for the call itself.
    pub async fn structured<T: DeserializeOwned>(self) -> Result<T> {
        let wraps = !self.session().revision().is_modern();
        structured(&self.send().await?, wraps)
    }
}

fn structured<T: DeserializeOwned>(result: &CallToolResult, wraps: bool) -> Result<T> {
    let texts = || result.content.iter().filter_map(ContentBlock::as_text);
    if result.is_error {
        let said = texts().collect::<Vec<_>>().join("\n");
        return Err(Error::tool(if said.is_empty() {
            "the tool failed and did not say why".into()
        } else {
            said
        }));
    }
    let decoded = match (&result.structured_content, texts().next()) {
        (Some(structured), _) => read(structured.get(), wraps),
        (None, Some(text)) => read_text(text),
        (None, None) => return Err(Error::decode("the tool returned no structured content")),
    };
    decoded.map_err(|error| {
        Error::decode(format!(
            "the tool's result is not of the type asked for: {error}"
        ))
        .with_source(error)
    })
}

/// Reads text that stands for structured content. It need not be JSON: some tools write a word, and mean a string.
fn read_text<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    serde_json::from_str(text).or_else(|error| {
        T::deserialize(text.into_deserializer()).map_err(|_: serde_json::Error| error)
    })
}

/// Reads structured content. Legacy revisions allow objects only, and there a value of another type stands in `result`: what
/// has no other member is taken for such a value, where the type allows it.
fn read<T: DeserializeOwned>(json: &str, wraps: bool) -> serde_json::Result<T> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Wrapped<T> {
        result: T,
    }
    let unwrapped = || serde_json::from_str(json).map(|Wrapped { result }| result);
    let direct = || serde_json::from_str(json);
    if wraps {
        unwrapped().or_else(|_| direct())
    } else {
        direct().or_else(|error| unwrapped().map_err(|_| error))
    }
}
