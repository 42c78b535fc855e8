//! The metadata of apps: what `_meta.ui` of a tool and of a resource says.

use oxmcp::protocol::{JsonObject, Meta, Tool};
use serde_json::{Value, json};

use crate::csp::Csp;

/// The key of `_meta` for the metadata of this extension.
pub(crate) const UI: &str = "ui";
/// The older key of a tool's `_meta`, which has only the URI of the app.
pub(crate) const FLAT_URI: &str = "ui/resourceUri";

/// A capability of the browser that an app asks for. A host may refuse it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Permission {
    /// The camera.
    Camera,
    /// The microphone.
    Microphone,
    /// The position of the device.
    Geolocation,
    /// Writing to the clipboard.
    ClipboardWrite,
}

impl Permission {
    /// All permissions.
    pub const ALL: [Self; 4] = [
        Self::Camera,
        Self::Microphone,
        Self::Geolocation,
        Self::ClipboardWrite,
    ];

    /// Returns the name in `_meta.ui.permissions`.
    #[must_use]
    pub fn member(self) -> &'static str {
        match self {
            Self::Camera => "camera",
            Self::Microphone => "microphone",
            Self::Geolocation => "geolocation",
            Self::ClipboardWrite => "clipboardWrite",
        }
    }

    /// Returns the name in the `allow` attribute of a frame.
    #[must_use]
    pub fn policy(self) -> &'static str {
        match self {
            Self::ClipboardWrite => "clipboard-write",
            _ => self.member(),
        }
    }
}

/// The callers of a tool: the model, and the views of apps of the same server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Visibility {
    /// Whether the model sees the tool.
    pub model: bool,
    /// Whether a view may call the tool.
    pub app: bool,
}

impl Visibility {
    /// The default: the model and views.
    pub const BOTH: Self = Self {
        model: true,
        app: true,
    };
    /// Only the model.
    pub const MODEL: Self = Self {
        model: true,
        app: false,
    };
    /// Only views.
    pub const APP: Self = Self {
        model: false,
        app: true,
    };

    #[cfg(feature = "server")]
    pub(crate) fn to_json(self) -> Value {
        let names = [(self.model, "model"), (self.app, "app")];
        names
            .into_iter()
            .filter_map(|(is_on, name)| is_on.then_some(name))
            .collect()
    }

    /// Reads the member `visibility`. A value that cannot be read hides the tool, because its author wanted to restrict it.
    fn read(value: Option<&Value>) -> Self {
        let has = |name: &str| match value {
            None | Some(Value::Null) => true,
            Some(Value::Array(names)) => names.iter().any(|it| it == name),
            Some(one) => one == name,
        };
        Self {
            model: has("model"),
            app: has("app"),
        }
    }
}

/// The metadata of a tool: the app that shows its results, and its callers.
///
/// ```
/// use oxmcp::protocol::Tool;
/// use oxmcp_apps::{ToolUi, Visibility};
/// use serde_json::json;
///
/// let mut tool = Tool::new("refresh", json!({"type": "object"}));
/// tool.meta.insert("ui", json!({"resourceUri": "ui://clock/view.html", "visibility": ["app"]}));
/// let ui = ToolUi::of(&tool);
/// assert_eq!(ui.resource_uri.as_deref(), Some("ui://clock/view.html"));
/// assert_eq!(ui.visibility, Visibility::APP);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolUi {
    /// The URI of the app that shows the results of the tool.
    pub resource_uri: Option<String>,
    /// The callers of the tool.
    pub visibility: Visibility,
}

impl ToolUi {
    /// Reads the metadata of a tool. The older key `ui/resourceUri` counts if the newer one is missing.
    #[must_use]
    pub fn of(tool: &Tool) -> Self {
        let ui = tool.meta.get(UI);
        let newer = ui.and_then(|ui| ui.get("resourceUri"));
        let uri = newer.or_else(|| tool.meta.get(FLAT_URI));
        Self {
            resource_uri: uri.and_then(Value::as_str).map(str::to_owned),
            visibility: Visibility::read(ui.and_then(|ui| ui.get("visibility"))),
        }
    }
}

/// The metadata of an app: what it may load, what it asks for, and how it wants to be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AppMeta {
    /// The origins from which it may load.
    pub csp: Csp,
    /// The capabilities of the browser that it asks for.
    pub permissions: Vec<Permission>,
    /// The origin that it asks for, in a format that each host defines.
    pub domain: Option<String>,
    /// Whether it wants a border and a background; `None` leaves it to the host.
    pub prefers_border: Option<bool>,
}

impl AppMeta {
    /// Reads the metadata from `_meta`; `None` if it has none. Members that cannot be read count as absent, and so do entries of
    /// the policy that are not origins.
    #[must_use]
    pub fn of(meta: &Meta) -> Option<Self> {
        let ui = meta.get(UI)?.as_object()?;
        let permissions = ui.get("permissions");
        let is_asked = |it: &Permission| {
            permissions.is_some_and(|all| all.get(it.member()).is_some_and(Value::is_object))
        };
        Some(Self {
            csp: ui.get("csp").map(Csp::read).unwrap_or_default(),
            permissions: Permission::ALL.into_iter().filter(is_asked).collect(),
            domain: ui.get("domain").and_then(Value::as_str).map(str::to_owned),
            prefers_border: ui.get("prefersBorder").and_then(Value::as_bool),
        })
    }

    /// Returns the value of `_meta.ui`. Empty lists are written, too: some hosts show a blank frame without them.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut ui = JsonObject::new();
        ui.insert("csp".to_owned(), self.csp.to_json());
        if !self.permissions.is_empty() {
            ui.insert("permissions".to_owned(), self.permissions_json());
        }
        if let Some(domain) = &self.domain {
            ui.insert("domain".to_owned(), json!(domain));
        }
        if let Some(border) = self.prefers_border {
            ui.insert("prefersBorder".to_owned(), json!(border));
        }
        ui.into()
    }

    pub(crate) fn permissions_json(&self) -> Value {
        let members = self.permissions.iter();
        let members = members.map(|it| (it.member().to_owned(), json!({})));
        Value::Object(members.collect())
    }

    /// Returns the value of the `allow` attribute of the frame, such as `camera; clipboard-write`.
    #[must_use]
    pub fn allow(&self) -> String {
        let names: Vec<_> = self.permissions.iter().map(|it| it.policy()).collect();
        names.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(meta: &Value) -> Tool {
        let mut tool = Tool::new("t", json!({"type": "object"}));
        for (key, value) in meta.as_object().unwrap() {
            tool.meta.insert(key, value.clone());
        }
        tool
    }

    #[test]
    fn visibility_is_read_and_fails_closed() {
        let neither = Visibility {
            model: false,
            app: false,
        };
        let cases = [
            (json!({}), Visibility::BOTH),
            (json!({"ui": {"visibility": null}}), Visibility::BOTH),
            (json!({"ui": {"visibility": ["app"]}}), Visibility::APP),
            (json!({"ui": {"visibility": ["model"]}}), Visibility::MODEL),
            (json!({"ui": {"visibility": "app"}}), Visibility::APP),
            (
                json!({"ui": {"visibility": ["model", "app", "x"]}}),
                Visibility::BOTH,
            ),
            (json!({"ui": {"visibility": []}}), neither),
            (json!({"ui": {"visibility": 7}}), neither),
        ];
        for (meta, expected) in cases {
            assert_eq!(ToolUi::of(&tool(&meta)).visibility, expected, "{meta}");
        }
    }

    #[test]
    fn newer_key_of_the_uri_wins() {
        let cases = [
            (json!({"ui/resourceUri": "ui://old"}), Some("ui://old")),
            (
                json!({"ui": {"resourceUri": "ui://new"}, "ui/resourceUri": "ui://old"}),
                Some("ui://new"),
            ),
            (json!({"ui": {"resourceUri": 7}}), None),
            (json!({}), None),
        ];
        for (meta, expected) in cases {
            let uri = ToolUi::of(&tool(&meta)).resource_uri;
            assert_eq!(uri.as_deref(), expected, "{meta}");
        }
    }

    #[test]
    fn app_metadata_is_written_and_read_back() {
        let mut meta = AppMeta::default();
        let empty = json!({"csp": {"connectDomains": [], "resourceDomains": [], "frameDomains": [], "baseUriDomains": []}});
        assert_eq!(meta.to_json(), empty);
        meta.csp.connect.push("wss://a.example".to_owned());
        meta.permissions = vec![Permission::Camera, Permission::ClipboardWrite];
        meta.prefers_border = Some(false);
        meta.domain = Some("x.example".to_owned());
        assert_eq!(meta.allow(), "camera; clipboard-write");
        let mut written = Meta::default();
        assert_eq!(AppMeta::of(&written), None);
        written.insert(UI, meta.to_json());
        assert_eq!(AppMeta::of(&written), Some(meta));
    }
}
