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

/// A tool, as a list shows it to a client: data, without a function. The tool that a server is given, with its handler, is `oxmcp::Tool`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Tool {
    /// Its name, for programs and models.
    pub name: String,
    /// Its name, for people (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does, for a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of its arguments, which are an object.
    pub input_schema: RawJson,
    /// The JSON Schema of its structured content (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<RawJson>,
    /// Hints about what it does (2025-03-26 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// How it may be run (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<ToolExecution>,
    /// Pictures for user interfaces (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// What travels beside.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl Tool {
    /// A tool with a name and the schema of its arguments.
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
    /// The same with a name for people.
    with_title => title: String,
    /// The same with a description.
    with_description => description: String,
    /// The same with the schema of its structured content.
    with_output_schema => output_schema: RawJson,
    /// The same with hints.
    with_annotations => annotations: ToolAnnotations,
});

/// Hints about what a tool does. They come from the server: do not trust them more than you trust it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// The tool's name, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// It changes nothing. Without the hint, false is assumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// It may destroy something, rather than only add. Without the hint, true is assumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Calling it again with the same arguments changes nothing more. Without the hint, false is assumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// It reaches out to an open world, as a web search does. Without the hint, true is assumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

setters!(ToolAnnotations {
    /// The same with a name for people.
    with_title => title: String,
    /// The same, saying whether the tool changes nothing.
    with_read_only_hint => read_only_hint: bool,
    /// The same, saying whether the tool may destroy something.
    with_destructive_hint => destructive_hint: bool,
    /// The same, saying whether a second call changes nothing more.
    with_idempotent_hint => idempotent_hint: bool,
    /// The same, saying whether the tool reaches out to an open world.
    with_open_world_hint => open_world_hint: bool,
});

/// How a tool may be run (2025-11-25 only).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolExecution {
    /// Whether it can run as a task. Without it, `forbidden` is assumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_support: Option<TaskSupport>,
}

open_enum! {
    /// Whether a tool can run as a task (2025-11-25 only).
    pub enum TaskSupport {
        /// It cannot.
        Forbidden = "forbidden",
        /// It can, and need not.
        Optional = "optional",
        /// It must.
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
    /// The answers to what the server asked when this request was made before (2026-07-28 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<InputResponses>,
    /// What the server gave along when it asked, as it was (2026-07-28 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Asks for the call to run as a task (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// What travels beside.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl CallToolParams {
    /// Calls a tool without arguments.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// The same with arguments.
    ///
    /// # Errors
    /// Where the arguments cannot be JSON, for example a map whose keys are no strings.
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
    /// What the tool returned, for a model.
    #[serde(default)]
    pub content: Vec<ContentBlock>,
    /// What the tool returned, for programs (2025-06-18 and later). Until 2025-11-25 it is an object.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub structured_content: Option<Box<RawValue>>,
    /// Whether the tool failed. The content then says why, so that the model can do better.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_error: bool,
    /// What travels beside.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl CallToolResult {
    /// The first text in the content, where there is any.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        self.content.iter().find_map(ContentBlock::as_text)
    }

    /// Content.
    #[must_use]
    pub fn new(content: impl Into<Vec<ContentBlock>>) -> Self {
        Self {
            content: content.into(),
            ..Self::default()
        }
    }

    /// Text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::new([ContentBlock::text(text)])
    }

    /// A failure, told to the model.
    #[must_use]
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text(text)
        }
    }

    /// Structured content, and the same as text for whom structure is nothing.
    ///
    /// # Errors
    /// Where the value cannot be JSON, for example a map whose keys are no strings.
    pub fn structured(value: &impl Serialize) -> serde_json::Result<Self> {
        let value = to_raw_value(value)?;
        Ok(Self {
            structured_content: Some(value.clone()),
            ..Self::text(Box::<str>::from(value))
        })
    }

    /// The text of all its content, each piece on lines of its own. What is no text is left out.
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
