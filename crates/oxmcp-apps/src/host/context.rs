//! The context of a view: what a host tells it about the tool call, the theme and the space on the screen.

use oxmcp::{
    RequestId,
    protocol::{JsonObject, Tool},
};
use serde::{Deserialize, Serialize};

/// A way in which a host shows a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum DisplayMode {
    /// In the conversation.
    Inline,
    /// On the whole screen or window.
    Fullscreen,
    /// Floating above the conversation.
    Pip,
}

/// The color theme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Theme {
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

/// The kind of a host's platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Platform {
    /// A web page.
    Web,
    /// A desktop program.
    Desktop,
    /// A mobile app.
    Mobile,
}

/// The tool call that a view shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolInfo {
    /// The ID of the `tools/call` request, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<RequestId>,
    /// The tool.
    pub tool: Tool,
}

impl ToolInfo {
    /// Creates the information for a call of this tool.
    #[must_use]
    pub fn new(tool: Tool) -> Self {
        Self { id: None, tool }
    }
}

/// The space for a view, in pixels. A fixed dimension has the value; a flexible one only a maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ContainerDimensions {
    /// The width, if it is fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<f64>,
    /// The largest width, if it is flexible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_width: Option<f64>,
    /// The height, if it is fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub height: Option<f64>,
    /// The largest height, if it is flexible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_height: Option<f64>,
}

/// The context of a view. A change of it has only the members that change.
///
/// ```
/// use oxmcp_apps::host::{DisplayMode, HostContext, Theme};
///
/// let mut context = HostContext::default();
/// context.theme = Some(Theme::Dark);
/// context.display_mode = Some(DisplayMode::Inline);
/// context.available_display_modes = Some(vec![DisplayMode::Inline, DisplayMode::Fullscreen]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct HostContext {
    /// The tool call that the view shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_info: Option<ToolInfo>,
    /// The color theme.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theme: Option<Theme>,
    /// The style: `variables`, and `css.fonts`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub styles: Option<JsonObject>,
    /// How the view is shown now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_mode: Option<DisplayMode>,
    /// How the host can show views.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_display_modes: Option<Vec<DisplayMode>>,
    /// The space for the view.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_dimensions: Option<ContainerDimensions>,
    /// The language and region of the user, as in `en-US`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
    /// The time zone of the user, as in `America/New_York`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// The name of the host program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    /// The kind of platform.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    /// Other members, such as `deviceCapabilities` and `safeAreaInsets`.
    #[serde(flatten)]
    pub other: JsonObject,
}

impl HostContext {
    /// Replaces the members that `change` has.
    pub(crate) fn merge(&mut self, change: Self) {
        fn set<T>(member: &mut Option<T>, new: Option<T>) {
            if new.is_some() {
                *member = new;
            }
        }
        set(&mut self.tool_info, change.tool_info);
        set(&mut self.theme, change.theme);
        set(&mut self.styles, change.styles);
        set(&mut self.display_mode, change.display_mode);
        set(
            &mut self.available_display_modes,
            change.available_display_modes,
        );
        set(&mut self.container_dimensions, change.container_dimensions);
        set(&mut self.locale, change.locale);
        set(&mut self.time_zone, change.time_zone);
        set(&mut self.user_agent, change.user_agent);
        set(&mut self.platform, change.platform);
        self.other.extend(change.other);
    }
}
