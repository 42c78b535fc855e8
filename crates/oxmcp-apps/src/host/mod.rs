//! The host's side: programs that show the apps of servers.
//!
//! A host [declares](extension) that it shows apps, hides tools that are [not for the model](is_for_model) from its agent, and
//! [opens](AppPage::open) the app of a tool that was called. It shows the page in a web view or a frame, with the page's
//! [policy](AppPage::policy), and connects the page to an [`AppBridge`]. A host that is a web page puts the frame into another
//! one, whose page is the [`sandbox_proxy`].

mod action;
mod agent;
mod bridge;
mod capabilities;
mod context;
mod inbound;
mod limits;
mod link;
mod message;
mod page;
mod sandbox;
#[cfg(test)]
mod tests;

pub use action::{
    Action, Answer, AppInfo, CallKey, ForwardedRequest, ForwardedRequestKind, HostRequest,
    HostRequestKind, ModelContext, Notice, RequestKey, file_name,
};
pub use agent::{extension, is_for_app, is_for_model};
pub use bridge::AppBridge;
pub use capabilities::{HostCapabilities, Modalities};
pub use context::{ContainerDimensions, DisplayMode, HostContext, Platform, Theme, ToolInfo};
pub use limits::BridgeLimits;
pub use page::AppPage;
pub use sandbox::sandbox_proxy;
