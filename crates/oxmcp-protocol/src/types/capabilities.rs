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

/// The capabilities of a client. An absent member means that the client lacks the capability.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ClientCapabilities {
    /// The client can list its roots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roots: Option<RootsCapability>,
    /// The client can sample from a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingCapability>,
    /// The client can elicit input from the user (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<ElicitationCapability>,
    /// The client can run requests as tasks (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<ClientTasksCapability>,
    /// Experimental capabilities, outside any standard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experimental: Option<JsonObject>,
    /// The extensions that the client supports: their identifiers, with their settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<JsonObject>,
    /// Capabilities that this version of the crate does not know.
    #[serde(flatten)]
    pub other: JsonObject,
}

setters!(ClientCapabilities {
    /// Sets the `roots` capability.
    with_roots => roots: RootsCapability,
    /// Sets the `sampling` capability.
    with_sampling => sampling: SamplingCapability,
    /// Sets the `elicitation` capability.
    with_elicitation => elicitation: ElicitationCapability,
    /// Sets the extensions.
    with_extensions => extensions: JsonObject,
});

/// The capability of a client to list its roots.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RootsCapability {
    /// Whether the client notifies the server when its roots change (2025-11-25 and earlier).
    #[serde(default, skip_serializing_if = "is_false")]
    pub list_changed: bool,
}

/// The capability of a client to sample from a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SamplingCapability {
    /// The client can give the model the context of other servers (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<JsonObject>,
    /// The client lets the model call tools (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<JsonObject>,
}

setters!(SamplingCapability {
    /// Declares that the client can give the model the context of other servers.
    with_context => context: JsonObject,
    /// Declares that the client lets the model call tools.
    with_tools => tools: JsonObject,
});

/// The capability of a client to elicit input from the user.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitationCapability {
    /// Elicitation by a form. If neither mode is declared, this one is assumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<JsonObject>,
    /// Elicitation by sending the user to a URL (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<JsonObject>,
}

impl ElicitationCapability {
    /// Returns whether the client can show forms: it declares them, or declares no mode at all.
    #[must_use]
    pub fn has_form(&self) -> bool {
        self.form.is_some() || self.url.is_none()
    }

    /// Returns whether the client can send the user to a URL.
    #[must_use]
    pub fn has_url(&self) -> bool {
        self.url.is_some()
    }
}

setters!(ElicitationCapability {
    /// Declares elicitation by a form.
    with_form => form: JsonObject,
    /// Declares elicitation by a URL.
    with_url => url: JsonObject,
});

/// The capabilities of a server. An absent member means that the server lacks the capability.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ServerCapabilities {
    /// The server has tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolsCapability>,
    /// The server has resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourcesCapability>,
    /// The server has prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<PromptsCapability>,
    /// The server completes arguments (2025-03-26 and later; earlier revisions need no declaration).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completions: Option<JsonObject>,
    /// The server sends log messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logging: Option<JsonObject>,
    /// The server can run requests as tasks (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<ServerTasksCapability>,
    /// Experimental capabilities, outside any standard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experimental: Option<JsonObject>,
    /// The extensions that the server supports: their identifiers, with their settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<JsonObject>,
    /// Capabilities that this version of the crate does not know.
    #[serde(flatten)]
    pub other: JsonObject,
}

setters!(ServerCapabilities {
    /// Sets the `tools` capability.
    with_tools => tools: ToolsCapability,
    /// Sets the `resources` capability.
    with_resources => resources: ResourcesCapability,
    /// Sets the `prompts` capability.
    with_prompts => prompts: PromptsCapability,
    /// Sets the `completions` capability.
    with_completions => completions: JsonObject,
    /// Sets the `logging` capability.
    with_logging => logging: JsonObject,
    /// Sets the extensions.
    with_extensions => extensions: JsonObject,
});

/// The capability of a server that has tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolsCapability {
    /// Whether the server notifies clients when the list of tools changes.
    #[serde(default, skip_serializing_if = "is_false")]
    pub list_changed: bool,
}

/// The capability of a server that has resources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourcesCapability {
    /// Whether clients can subscribe to changes of a resource.
    #[serde(default, skip_serializing_if = "is_false")]
    pub subscribe: bool,
    /// Whether the server notifies clients when the list of resources changes.
    #[serde(default, skip_serializing_if = "is_false")]
    pub list_changed: bool,
}

/// The capability of a server that has prompts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PromptsCapability {
    /// Whether the server notifies clients when the list of prompts changes.
    #[serde(default, skip_serializing_if = "is_false")]
    pub list_changed: bool,
}
