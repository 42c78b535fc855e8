//! Listening to what changes (2026-07-28 and later).
//!
//! See [subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions).

use serde::{Deserialize, Serialize};

use super::{JsonObject, Meta, json::is_false};

/// What a client wants to hear of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscriptionFilter {
    /// That there are other tools.
    #[serde(default, skip_serializing_if = "is_false")]
    pub tools_list_changed: bool,
    /// That there are other prompts.
    #[serde(default, skip_serializing_if = "is_false")]
    pub prompts_list_changed: bool,
    /// That there are other resources.
    #[serde(default, skip_serializing_if = "is_false")]
    pub resources_list_changed: bool,
    /// That one of these resources changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_subscriptions: Vec<String>,
    /// What extensions add.
    #[serde(flatten)]
    pub other: JsonObject,
}

/// The params of `subscriptions/listen`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListenParams {
    /// What to hear of.
    pub notifications: SubscriptionFilter,
    /// What travels beside.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl ListenParams {
    /// Listens to what passes a filter.
    #[must_use]
    pub fn new(notifications: SubscriptionFilter) -> Self {
        Self {
            notifications,
            meta: Meta::default(),
        }
    }
}

/// The result of `subscriptions/listen`, which ends the stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListenResult {
    /// What travels beside: the id of the request, at [`Meta::SUBSCRIPTION_ID`].
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

/// The params of `notifications/subscriptions/acknowledged`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AcknowledgedParams {
    /// What the server will tell: the part of the filter that it agreed to.
    pub notifications: SubscriptionFilter,
    /// What travels beside.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl AcknowledgedParams {
    /// Agrees to a filter.
    #[must_use]
    pub fn new(notifications: SubscriptionFilter) -> Self {
        Self {
            notifications,
            meta: Meta::default(),
        }
    }
}
