//! Tools and results in the forms of the APIs of models.

use std::fmt::Write;

use base64::{Engine, engine::general_purpose::STANDARD};
use oxmcp::{
    Result,
    protocol::{CallToolResult, ContentBlock, ResourceBody, Tool},
};
use serde_json::{Map, Value, json};

/// The image formats that the APIs accept.
const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// An API of a model: the form of tools in its requests, and of their results.
///
/// ```
/// use oxmcp::protocol::Tool;
/// use oxmcp_group::ModelApi;
/// use serde_json::json;
///
/// let tool = Tool::new("add", json!({"type": "object"})).with_description("Add two numbers");
/// assert_eq!(
///     ModelApi::AnthropicMessages.tools([&tool]),
///     json!([{"name": "add", "description": "Add two numbers", "input_schema": {"type": "object", "properties": {}}}])
/// );
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ModelApi {
    /// Anthropic's Messages API.
    AnthropicMessages,
    /// OpenAI's Chat Completions API, and those of other vendors that have the same form.
    OpenAiChat,
    /// OpenAI's Responses API.
    OpenAiResponses,
}

impl ModelApi {
    /// Returns tools as the array `tools` of a request.
    pub fn tools<'a>(self, tools: impl IntoIterator<Item = &'a Tool>) -> Value {
        tools.into_iter().map(|tool| self.tool(tool)).collect()
    }

    fn tool(self, tool: &Tool) -> Value {
        let schema = accepted_schema(serde_json::to_value(&tool.input_schema).unwrap_or_default());
        let description = tool.description.as_deref().or(tool.title.as_deref());
        let description = description.unwrap_or_default();
        match self {
            Self::AnthropicMessages => {
                json!({"name": tool.name, "description": description, "input_schema": schema})
            }
            Self::OpenAiChat => json!({
                "type": "function",
                "function": {"name": tool.name, "description": description, "parameters": schema},
            }),
            Self::OpenAiResponses => json!({
                "type": "function",
                "name": tool.name,
                "description": description,
                "parameters": schema,
                // Otherwise the API rejects every schema with an optional property.
                "strict": false,
            }),
        }
    }

    /// Returns the outcome of a call as the content that answers the model's call with this id: a `tool_result` block, a message
    /// of the role `tool`, or a `function_call_output` item.
    ///
    /// The error of a call becomes a failed result, because a model can work around it. Content that the API does not accept,
    /// such as audio, becomes a line of text that names it.
    ///
    /// ```
    /// use oxmcp_group::ModelApi;
    /// use serde_json::json;
    ///
    /// # async fn run(group: oxmcp_group::GroupSession) {
    /// let outcome = group.call_tool("files_read", json!({"path": "notes.txt"})).await;
    /// let block = ModelApi::AnthropicMessages.result("toolu_01", &outcome);
    /// # let _ = block;
    /// # }
    /// ```
    #[must_use]
    pub fn result(self, call_id: &str, outcome: &Result<CallToolResult>) -> Value {
        let (parts, is_error) = match outcome {
            // Anthropic rejects a failure that is empty or not text, and OpenAI has no sign of failure beside images.
            Ok(result) if result.is_error => (failure(&parts(result)), true),
            Ok(result) => (parts(result), false),
            Err(error) => (vec![Part::Text(error.to_string())], true),
        };
        match self {
            Self::AnthropicMessages => {
                // The API rejects blank text.
                let parts = parts.iter().filter(|it| !it.is_blank());
                let content: Vec<_> = parts.map(Part::for_anthropic).collect();
                let mut block =
                    json!({"type": "tool_result", "tool_use_id": call_id, "content": content});
                if let (true, Some(members)) = (is_error, block.as_object_mut()) {
                    members.insert("is_error".into(), true.into());
                }
                block
            }
            Self::OpenAiChat => {
                let content = as_text(&parts, is_error);
                json!({"role": "tool", "tool_call_id": call_id, "content": content})
            }
            Self::OpenAiResponses => {
                let has_image = parts.iter().any(|it| matches!(it, Part::Image { .. }));
                let output: Value = if has_image {
                    parts.iter().map(Part::for_responses).collect()
                } else {
                    as_text(&parts, is_error).into()
                };
                json!({"type": "function_call_output", "call_id": call_id, "output": output})
            }
        }
    }
}

/// The input schema of a tool in a form that the APIs accept: an object with a type and properties, and at the top no alternatives
/// and conditions, which would make them reject all tools of the request. The properties of all alternatives are kept; the server
/// validates the arguments by its own schema.
fn accepted_schema(schema: Value) -> Value {
    let Value::Object(mut members) = schema else {
        return json!({"type": "object", "properties": {}});
    };
    let mut properties = match members.remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    };
    for key in ["oneOf", "anyOf", "allOf"] {
        let forms = members.remove(key);
        for form in forms.iter().filter_map(Value::as_array).flatten() {
            let own = form.get("properties").and_then(Value::as_object);
            for (name, property) in own.into_iter().flatten() {
                let entry = properties.entry(name.clone());
                entry.or_insert_with(|| property.clone());
            }
        }
    }
    for key in ["enum", "const", "not", "if", "then", "else"] {
        members.remove(key);
    }
    members.insert("type".to_owned(), "object".into());
    members.insert("properties".to_owned(), properties.into());
    members.into()
}

/// The parts of a failed result, as text.
fn failure(parts: &[Part]) -> Vec<Part> {
    let text = as_text(parts, false);
    vec![Part::Text(match text.trim().is_empty() {
        true => "the tool failed without a message".to_owned(),
        false => text,
    })]
}

/// A part of a result that some API accepts.
enum Part {
    Text(String),
    Image { mime_type: String, data: String },
}

impl Part {
    fn is_blank(&self) -> bool {
        matches!(self, Self::Text(text) if text.trim().is_empty())
    }

    fn for_anthropic(&self) -> Value {
        match self {
            Self::Text(text) => json!({"type": "text", "text": text}),
            Self::Image { mime_type, data } => json!({
                "type": "image",
                "source": {"type": "base64", "media_type": mime_type, "data": data},
            }),
        }
    }

    fn for_responses(&self) -> Value {
        match self {
            Self::Text(text) => json!({"type": "input_text", "text": text}),
            Self::Image { mime_type, data } => json!({
                "type": "input_image",
                "image_url": format!("data:{mime_type};base64,{data}"),
            }),
        }
    }
}

/// The text of all parts, for an API that has no sign of failure and no images.
fn as_text(parts: &[Part], is_error: bool) -> String {
    let mut text = String::from(if is_error { "Error: " } else { "" });
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        match part {
            Part::Text(it) => text.push_str(it),
            // Writing to a string cannot fail.
            Part::Image { mime_type, .. } => drop(write!(text, "[{mime_type}, not shown]")),
        }
    }
    text
}

fn parts(result: &CallToolResult) -> Vec<Part> {
    let mut parts: Vec<Part> = result.content.iter().map(part).collect();
    if let (true, Some(structured)) = (parts.is_empty(), &result.structured_content) {
        parts.push(Part::Text(structured.get().to_owned()));
    }
    parts
}

fn part(block: &ContentBlock) -> Part {
    match block {
        ContentBlock::Text(text) => Part::Text(text.text.clone()),
        ContentBlock::Image(image) => binary(&image.mime_type, image.data.as_ref()),
        ContentBlock::Audio(audio) => binary(&audio.mime_type, audio.data.as_ref()),
        ContentBlock::ResourceLink(link) => {
            Part::Text(format!("[resource {}: {}]", link.name, link.uri))
        }
        ContentBlock::Resource(embedded) => {
            let contents = &embedded.resource;
            match &contents.body {
                ResourceBody::Text(text) => Part::Text(text.clone()),
                ResourceBody::Blob(blob) => binary(
                    contents.mime_type.as_deref().unwrap_or_default(),
                    blob.as_ref(),
                ),
                _ => Part::Text(format!("[resource {}, not shown]", contents.uri)),
            }
        }
        ContentBlock::Unknown(content) => {
            Part::Text(serde_json::to_string(content).unwrap_or_default())
        }
        _ => Part::Text("[content of an unknown type]".into()),
    }
}

fn binary(mime_type: &str, bytes: &[u8]) -> Part {
    if IMAGES.contains(&mime_type) {
        return Part::Image {
            mime_type: mime_type.to_owned(),
            data: STANDARD.encode(bytes),
        };
    }
    let kind = if mime_type.is_empty() {
        "bytes"
    } else {
        mime_type
    };
    Part::Text(format!("[{kind}, {} bytes, not shown]", bytes.len()))
}

#[cfg(test)]
mod tests {
    use oxmcp::{Error, protocol::ResourceContents};

    use super::*;

    const ALL: [ModelApi; 3] = [
        ModelApi::AnthropicMessages,
        ModelApi::OpenAiChat,
        ModelApi::OpenAiResponses,
    ];

    #[test]
    fn each_api_gets_its_form_of_a_tool() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "number"}}});
        let empty = json!({"type": "object", "properties": {}});
        let tools = [
            Tool::new("add", schema.clone()).with_description("Add"),
            Tool::new("now", json!({})).with_title("The time"),
        ];
        let [anthropic, chat, responses] = ALL.map(|api| api.tools(&tools));
        let expected = json!([
            {"name": "add", "description": "Add", "input_schema": schema},
            {"name": "now", "description": "The time", "input_schema": empty},
        ]);
        assert_eq!(anthropic, expected);
        let add = json!({"name": "add", "description": "Add", "parameters": schema});
        assert_eq!(chat[0], json!({"type": "function", "function": add}));
        let now = json!({
            "type": "function", "name": "now", "description": "The time", "parameters": empty, "strict": false,
        });
        assert_eq!(responses[1], now);
    }

    #[test]
    fn alternatives_of_arguments_become_properties() {
        let schema = json!({
            "anyOf": [
                {"properties": {"kind": {"const": "tea"}, "cups": {"type": "integer"}}, "required": ["cups"]},
                {"properties": {"kind": {"const": "cake"}, "size": {"type": "number"}}},
            ],
            "properties": {"kind": {"type": "string"}},
            "required": ["kind"],
            "not": {},
        });
        let tools = [Tool::new("order", schema)];
        let expected = json!({
            "type": "object",
            "properties": {"kind": {"type": "string"}, "cups": {"type": "integer"}, "size": {"type": "number"}},
            "required": ["kind"],
        });
        let anthropic = ModelApi::AnthropicMessages.tools(&tools);
        assert_eq!(anthropic[0]["input_schema"], expected);
    }

    /// The result for each API.
    fn results(outcome: &Result<CallToolResult>) -> [Value; 3] {
        ALL.map(|api| api.result("1", outcome))
    }

    #[test]
    fn each_api_gets_its_form_of_a_result() {
        let text = CallToolResult::new(["first", "", "second"].map(ContentBlock::text));
        let block = |text: &str| json!({"type": "text", "text": text});
        let expected = [
            json!({"type": "tool_result", "tool_use_id": "1", "content": [block("first"), block("second")]}),
            json!({"role": "tool", "tool_call_id": "1", "content": "first\n\nsecond"}),
            json!({"type": "function_call_output", "call_id": "1", "output": "first\n\nsecond"}),
        ];
        assert_eq!(results(&Ok(text)), expected);
        let image = ContentBlock::image(b"png".to_vec(), "image/png");
        let image = CallToolResult::new([ContentBlock::text("see"), image]);
        let [anthropic, chat, responses] = results(&Ok(image));
        let source = json!({"type": "base64", "media_type": "image/png", "data": "cG5n"});
        assert_eq!(
            anthropic["content"][1],
            json!({"type": "image", "source": source})
        );
        assert_eq!(chat["content"], "see\n[image/png, not shown]");
        let url = "data:image/png;base64,cG5n";
        let output = json!([
            {"type": "input_text", "text": "see"},
            {"type": "input_image", "image_url": url},
        ]);
        assert_eq!(responses["output"], output);
    }

    #[test]
    fn failures_are_results_that_models_can_read() {
        let mut failed = CallToolResult::new([ContentBlock::text("it is gone")]);
        failed.is_error = true;
        for outcome in [Ok(failed), Err(Error::closed("it is gone"))] {
            let [anthropic, chat, responses] = results(&outcome);
            assert_eq!(anthropic["is_error"], true);
            assert_eq!(anthropic["content"][0]["text"], "it is gone");
            assert_eq!(chat["content"], "Error: it is gone");
            assert_eq!(responses["output"], "Error: it is gone");
        }
        // Anthropic rejects a failure without text, or with an image.
        let image = ContentBlock::image(b"png".to_vec(), "image/png");
        for (blocks, text) in [
            (
                vec![ContentBlock::text(" ")],
                "the tool failed without a message",
            ),
            (vec![image], "[image/png, not shown]"),
        ] {
            let mut failed = CallToolResult::new(blocks);
            failed.is_error = true;
            let [anthropic, _, responses] = results(&Ok(failed));
            assert_eq!(
                anthropic["content"],
                json!([{"type": "text", "text": text}])
            );
            assert_eq!(responses["output"], format!("Error: {text}"));
        }
    }

    #[test]
    fn other_content_is_named() {
        let embedded = |contents| {
            let resource = oxmcp::protocol::EmbeddedResource::new(contents);
            ContentBlock::Resource(resource)
        };
        let blocks = [
            ContentBlock::audio(b"wave".to_vec(), "audio/wav"),
            ContentBlock::image(b"svg".to_vec(), "image/svg+xml"),
            ContentBlock::resource_link(oxmcp::protocol::Resource::new("x:1", "one")),
            embedded(ResourceContents::text("x:2", "the text")),
            embedded(ResourceContents::blob("x:3", b"bytes".to_vec())),
        ];
        let message = ModelApi::OpenAiChat.result("1", &Ok(CallToolResult::new(blocks)));
        insta::assert_snapshot!(message["content"].as_str().unwrap(), @r"
        [audio/wav, 4 bytes, not shown]
        [image/svg+xml, 3 bytes, not shown]
        [resource one: x:1]
        the text
        [bytes, 5 bytes, not shown]
        ");
        let mut structured = CallToolResult::default();
        structured.structured_content = serde_json::value::to_raw_value(&json!({"a": 1})).ok();
        let message = ModelApi::OpenAiChat.result("1", &Ok(structured));
        assert_eq!(message["content"], "{\"a\":1}");
    }
}
