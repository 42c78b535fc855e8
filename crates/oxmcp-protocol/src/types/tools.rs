//! Tools: functions that a server offers to a model.
//!
//! See [tools](https://modelcontextprotocol.io/specification/2026-07-28/server/tools).

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    meta::object::Meta,
    mrtr::responses::InputResponses,
    types::{annotations::Icon, content::ContentBlock, pagination::page, tasks::TaskMetadata},
    values::{
        json::{RawJson, is_false, present},
        open_enum::{open_enum, setters},
    },
};

/// A tool as an entry of a listing, without a handler. The tool that is registered with a server, with its handler, is
/// `oxmcp::Tool`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Tool {
    /// Its name, for programs and models.
    pub name: String,
    /// Its name, for people (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A description of its purpose, for a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of its arguments, which are an object.
    #[serde(deserialize_with = "crate::lenient::schema")]
    pub input_schema: RawJson,
    /// The JSON Schema of its structured content (2025-06-18 and later).
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::lenient::optional_schema"
    )]
    pub output_schema: Option<RawJson>,
    /// Hints about its behavior (2025-03-26 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// Properties of its execution (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<ToolExecution>,
    /// Icons for user interfaces (2025-11-25 and later).
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::lenient::list"
    )]
    pub icons: Vec<Icon>,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl Tool {
    /// Creates a tool with a name and the schema of its arguments.
    #[must_use]
    pub fn new(name: impl Into<String>, input_schema: impl Into<RawJson>) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: None,
            input_schema: input_schema.into(),
            output_schema: None,
            annotations: None,
            execution: None,
            icons: Vec::new(),
            meta: Meta::default(),
        }
    }
}

setters!(Tool {
    /// Sets the title, the name for people.
    with_title => title: String,
    /// Sets the description.
    with_description => description: String,
    /// Sets the schema of the structured content.
    with_output_schema => output_schema: RawJson,
    /// Sets the hints about the behavior.
    with_annotations => annotations: ToolAnnotations,
});

/// Hints about the behavior of a tool. They come from the server: do not trust them more than you trust the server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// The tool's name, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Whether the tool leaves its environment unchanged. Without the hint, false is assumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// Whether the tool may make destructive changes, rather than only additions. Without the hint, true is assumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Whether further calls with the same arguments have no additional effect. Without the hint, false is assumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// Whether the tool interacts with an open world of external entities, as a web search does. Without the hint, true is
    /// assumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

setters!(ToolAnnotations {
    /// Sets the title, the name for people.
    with_title => title: String,
    /// Sets whether the tool leaves its environment unchanged.
    with_read_only_hint => read_only_hint: bool,
    /// Sets whether the tool may make destructive changes.
    with_destructive_hint => destructive_hint: bool,
    /// Sets whether further calls with the same arguments have no additional effect.
    with_idempotent_hint => idempotent_hint: bool,
    /// Sets whether the tool interacts with an open world.
    with_open_world_hint => open_world_hint: bool,
});

/// Properties of the execution of a tool (2025-11-25 only).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolExecution {
    /// Whether the tool can run as a task. If it is absent, `forbidden` is assumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_support: Option<TaskSupport>,
}

open_enum! {
    /// Whether a tool can run as a task (2025-11-25 only).
    pub enum TaskSupport {
        /// The tool cannot run as a task.
        Forbidden = "forbidden",
        /// The tool can run as a task, but need not.
        Optional = "optional",
        /// The tool must run as a task.
        Required = "required",
    }
}

/// The params of `tools/call`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallToolParams {
    /// The name of the tool.
    pub name: String,
    /// The arguments: an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Box<RawValue>>,
    /// The responses to the server's input requests, if this request is a retry (2026-07-28 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<InputResponses>,
    /// The state that the server sent with its input requests, unchanged, if this request is a retry (2026-07-28 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// The request to run the call as a task (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl CallToolParams {
    /// Creates the params of a call without arguments.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// Sets the arguments.
    ///
    /// # Errors
    /// If the arguments cannot be serialized as JSON, for example a map whose keys are not strings.
    pub fn with_arguments(mut self, arguments: &impl Serialize) -> serde_json::Result<Self> {
        self.arguments = Some(to_raw_value(arguments)?);
        Ok(self)
    }
}

/// The result of `tools/call`.
///
/// ```
/// use oxmcp_protocol::CallToolResult;
///
/// let result = CallToolResult::text("4");
/// assert_eq!(serde_json::to_string(&result)?, r#"{"content":[{"type":"text","text":"4"}]}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallToolResult {
    /// The output of the tool, for a model.
    #[serde(default, deserialize_with = "crate::lenient::list")]
    pub content: Vec<ContentBlock>,
    /// The structured output of the tool, for programs (2025-06-18 and later). In 2025-11-25 and earlier it is an object.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub structured_content: Option<Box<RawValue>>,
    /// Whether the tool failed. The content then describes the error, so that the model can correct its call.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_error: bool,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl CallToolResult {
    /// Returns the first text in the content, if there is any.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        self.content.iter().find_map(ContentBlock::as_text)
    }

    /// Creates a result with this content.
    #[must_use]
    pub fn new(content: impl Into<Vec<ContentBlock>>) -> Self {
        Self {
            content: content.into(),
            ..Self::default()
        }
    }

    /// Creates a result with one text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::new([ContentBlock::text(text)])
    }

    /// Creates the result of a failed call, with a text that describes the error to the model.
    #[must_use]
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text(text)
        }
    }

    /// Creates a result with structured content, and with the same JSON as text for clients that do not read structured content.
    ///
    /// # Errors
    /// If the value cannot be serialized as JSON, for example a map whose keys are not strings.
    pub fn structured(value: &impl Serialize) -> serde_json::Result<Self> {
        let value = to_raw_value(value)?;
        Ok(Self {
            structured_content: Some(value.clone()),
            ..Self::text(Box::<str>::from(value))
        })
    }

    /// Returns the texts of the content, joined by line breaks. Blocks that are not text are left out.
    ///
    /// ```
    /// use oxmcp_protocol::CallToolResult;
    ///
    /// assert_eq!(CallToolResult::error("b must not be 0").to_text(), "b must not be 0");
    /// ```
    #[must_use]
    pub fn to_text(&self) -> String {
        let texts = self.content.iter().filter_map(ContentBlock::as_text);
        texts.collect::<Vec<_>>().join("\n")
    }
}

page! {
    /// The result of `tools/list`: one page.
    pub struct ListToolsResult {
        /// The tools of this page.
        pub tools: Vec<Tool>,
    }
}
