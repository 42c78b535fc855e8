//! Capabilities of clients and servers.
//!
//! See [capabilities](https://modelcontextprotocol.io/specification/2026-07-28/server/discover#capabilities).

use serde::{Deserialize, Serialize};

use crate::{
    types::tasks::{ClientTasksCapability, ServerTasksCapability},
    values::{
        json::{JsonObject, is_false},
        open_enum::setters,
    },
};

/// What a client can do. A part that is missing is something that it cannot do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ClientCapabilities {
    /// It can tell its roots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roots: Option<RootsCapability>,
    /// It can ask a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingCapability>,
    /// It can ask the user (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<ElicitationCapability>,
    /// It can run requests as tasks (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<ClientTasksCapability>,
    /// What it can do outside any standard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experimental: Option<JsonObject>,
    /// The extensions that it knows, by their identifiers, with their settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<JsonObject>,
    /// What this version of the crate does not know.
    #[serde(flatten)]
    pub other: JsonObject,
}

setters!(ClientCapabilities {
    /// The same with roots.
    with_roots => roots: RootsCapability,
    /// The same with sampling.
    with_sampling => sampling: SamplingCapability,
    /// The same with elicitation.
    with_elicitation => elicitation: ElicitationCapability,
    /// The same with extensions.
    with_extensions => extensions: JsonObject,
});

/// A client can tell its roots.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RootsCapability {
    /// It says when they change (2025-11-25 and earlier).
    #[serde(default, skip_serializing_if = "is_false")]
    pub list_changed: bool,
}

/// A client can ask a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SamplingCapability {
    /// It can give the model other servers' context (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<JsonObject>,
    /// The model may ask for tools (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<JsonObject>,
}

setters!(SamplingCapability {
    /// The same with context.
    with_context => context: JsonObject,
    /// The same with tools.
    with_tools => tools: JsonObject,
});

/// A client can ask the user.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitationCapability {
    /// By a form. Where neither is named, this one is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<JsonObject>,
    /// By sending the user to a URL (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<JsonObject>,
}

impl ElicitationCapability {
    /// Whether the client can show forms: it says so, or names no way at all.
    #[must_use]
    pub fn has_form(&self) -> bool {
        self.form.is_some() || self.url.is_none()
    }

    /// Whether the client can send the user to a URL.
    #[must_use]
    pub fn has_url(&self) -> bool {
        self.url.is_some()
    }
}

setters!(ElicitationCapability {
    /// The same with forms.
    with_form => form: JsonObject,
    /// The same with URLs.
    with_url => url: JsonObject,
});

/// What a server can do. A part that is missing is something that it cannot do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ServerCapabilities {
    /// It has tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolsCapability>,
    /// It has resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourcesCapability>,
    /// It has prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<PromptsCapability>,
    /// It completes arguments (2025-03-26 and later; before, nothing had to be said).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completions: Option<JsonObject>,
    /// It sends log messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logging: Option<JsonObject>,
    /// It can run requests as tasks (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<ServerTasksCapability>,
    /// What it can do outside any standard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experimental: Option<JsonObject>,
    /// The extensions that it knows, by their identifiers, with their settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<JsonObject>,
    /// What this version of the crate does not know.
    #[serde(flatten)]
    pub other: JsonObject,
}

setters!(ServerCapabilities {
    /// The same with tools.
    with_tools => tools: ToolsCapability,
    /// The same with resources.
    with_resources => resources: ResourcesCapability,
    /// The same with prompts.
    with_prompts => prompts: PromptsCapability,
    /// The same with completions.
    with_completions => completions: JsonObject,
    /// The same with logging.
    with_logging => logging: JsonObject,
    /// The same with extensions.
    with_extensions => extensions: JsonObject,
});

/// A server has tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolsCapability {
    /// It says when they change.
    #[serde(default, skip_serializing_if = "is_false")]
    pub list_changed: bool,
}

/// A server has resources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourcesCapability {
    /// It says when one changes, to who subscribed to it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub subscribe: bool,
    /// It says when there are others.
    #[serde(default, skip_serializing_if = "is_false")]
    pub list_changed: bool,
}

/// A server has prompts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PromptsCapability {
    /// It says when they change.
    #[serde(default, skip_serializing_if = "is_false")]
    pub list_changed: bool,
}
