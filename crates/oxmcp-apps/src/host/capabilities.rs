//! The capabilities of a host, which decide the requests of a view that it serves.

use oxmcp::protocol::{ContentBlock, JsonObject};
use serde_json::{Value, json};

use crate::metadata::AppMeta;

/// The kinds of content that a host accepts from a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Modalities {
    /// Text.
    pub text: bool,
    /// Images.
    pub image: bool,
    /// Audio.
    pub audio: bool,
    /// Contents of resources.
    pub resource: bool,
    /// Links to resources.
    pub resource_link: bool,
    /// Structured content, an object.
    pub structured_content: bool,
}

impl Modalities {
    /// Only text.
    pub const TEXT: Self = Self {
        text: true,
        image: false,
        audio: false,
        resource: false,
        resource_link: false,
        structured_content: false,
    };
    /// Everything.
    pub const ALL: Self = Self {
        text: true,
        image: true,
        audio: true,
        resource: true,
        resource_link: true,
        structured_content: true,
    };

    /// Whether a block of content is of one of the kinds.
    pub(crate) fn allows(self, block: &ContentBlock) -> bool {
        match block {
            ContentBlock::Text(_) => self.text,
            ContentBlock::Image(_) => self.image,
            ContentBlock::Audio(_) => self.audio,
            ContentBlock::Resource(_) => self.resource,
            ContentBlock::ResourceLink(_) => self.resource_link,
            _ => false,
        }
    }

    fn to_json(self) -> Value {
        let kinds = [
            (self.text, "text"),
            (self.image, "image"),
            (self.audio, "audio"),
            (self.resource, "resource"),
            (self.resource_link, "resourceLink"),
            (self.structured_content, "structuredContent"),
        ];
        let kinds = kinds.into_iter().filter(|(is_on, _)| *is_on);
        Value::Object(
            kinds
                .map(|(_, name)| (name.to_owned(), json!({})))
                .collect(),
        )
    }
}

/// The capabilities of a host. By default it has none; a request for one that it lacks fails, and the host does not see it.
///
/// ```
/// use oxmcp_apps::host::{HostCapabilities, Modalities};
///
/// let mut capabilities = HostCapabilities::default();
/// capabilities.server_tools = true;
/// capabilities.open_links = true;
/// capabilities.message = Some(Modalities::TEXT);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostCapabilities {
    /// Opens links.
    pub open_links: bool,
    /// Saves files.
    pub download_file: bool,
    /// Forwards tool calls to the server, and notifies the view of changes of the tools.
    pub server_tools: bool,
    /// Forwards reads and lists of resources to the server, and notifies the view of changes of the resources.
    pub server_resources: bool,
    /// Accepts log messages.
    pub logging: bool,
    /// Puts content in the model's context.
    pub update_model_context: Option<Modalities>,
    /// Adds messages of the user to the conversation.
    pub message: Option<Modalities>,
    /// Runs prompts on its model.
    pub sampling: bool,
    /// Lets these prompts use tools.
    pub sampling_tools: bool,
}

impl HostCapabilities {
    /// The value for the view. `meta` is the policy and the permissions that the view has got.
    pub(crate) fn to_json(self, meta: Option<&AppMeta>) -> Value {
        let mut all = JsonObject::new();
        let mut add = |is_on: bool, name: &str, value: Value| {
            if is_on {
                all.insert(name.to_owned(), value);
            }
        };
        add(self.open_links, "openLinks", json!({}));
        add(self.download_file, "downloadFile", json!({}));
        add(
            self.server_tools,
            "serverTools",
            json!({"listChanged": true}),
        );
        add(
            self.server_resources,
            "serverResources",
            json!({"listChanged": true}),
        );
        add(self.logging, "logging", json!({}));
        let modalities = [
            (self.update_model_context, "updateModelContext"),
            (self.message, "message"),
        ];
        for (modalities, name) in modalities {
            add(
                modalities.is_some(),
                name,
                modalities.map(Modalities::to_json).unwrap_or_default(),
            );
        }
        let tools = match self.sampling_tools {
            true => json!({"tools": {}}),
            false => json!({}),
        };
        add(self.sampling, "sampling", tools);
        let sandbox = meta
            .map(|meta| json!({"csp": meta.csp.to_json(), "permissions": meta.permissions_json()}));
        add(sandbox.is_some(), "sandbox", sandbox.unwrap_or_default());
        all.into()
    }
}
