//! Subscriptions to changes (2026-07-28 and later).
//!
//! See [subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    meta::object::Meta,
    types::capabilities::ServerCapabilities,
    values::json::{JsonObject, is_false},
};

/// The notifications that a client subscribes to.
///
/// ```
/// use oxmcp_protocol::SubscriptionFilter;
///
/// let filter = SubscriptionFilter::default()
///     .with_tools_list_changed(true)
///     .with_resource_subscription("file:///project/config.json");
/// assert!(!filter.is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscriptionFilter {
    /// Whether the client wants notifications about changes of the list of tools.
    #[serde(default, skip_serializing_if = "is_false")]
    pub tools_list_changed: bool,
    /// Whether the client wants notifications about changes of the list of prompts.
    #[serde(default, skip_serializing_if = "is_false")]
    pub prompts_list_changed: bool,
    /// Whether the client wants notifications about changes of the list of resources.
    #[serde(default, skip_serializing_if = "is_false")]
    pub resources_list_changed: bool,
    /// The URIs of the resources about whose changes the client wants notifications.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::lenient::list"
    )]
    pub resource_subscriptions: Vec<String>,
    /// Keys that extensions add.
    #[serde(flatten)]
    pub other: JsonObject,
}

impl SubscriptionFilter {
    /// Sets whether the client wants notifications about changes of the list of tools.
    #[must_use]
    pub fn with_tools_list_changed(mut self, wanted: bool) -> Self {
        self.tools_list_changed = wanted;
        self
    }

    /// Sets whether the client wants notifications about changes of the list of prompts.
    #[must_use]
    pub fn with_prompts_list_changed(mut self, wanted: bool) -> Self {
        self.prompts_list_changed = wanted;
        self
    }

    /// Sets whether the client wants notifications about changes of the list of resources.
    #[must_use]
    pub fn with_resources_list_changed(mut self, wanted: bool) -> Self {
        self.resources_list_changed = wanted;
        self
    }

    /// Adds the URI of a resource about whose changes the client wants notifications.
    #[must_use]
    pub fn with_resource_subscription(mut self, uri: impl Into<String>) -> Self {
        self.resource_subscriptions.push(uri.into());
        self
    }

    /// Returns whether the filter selects no notifications.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.tools_list_changed
            && !self.prompts_list_changed
            && !self.resources_list_changed
            && self.resource_subscriptions.is_empty()
            && self.other.is_empty()
    }

    /// Returns whether the protocol defines a key, so that no extension can use it.
    #[doc(hidden)]
    #[must_use]
    pub fn is_own_key(key: &str) -> bool {
        matches!(
            key,
            "toolsListChanged"
                | "promptsListChanged"
                | "resourcesListChanged"
                | "resourceSubscriptions"
        )
    }

    /// Sets a key that an extension adds. The extension defines its values and their meaning.
    ///
    /// ```
    /// use oxmcp_protocol::SubscriptionFilter;
    ///
    /// let filter = SubscriptionFilter::default().with_other("com.example/rooms", ["kitchen"].as_slice());
    /// assert!(!filter.is_empty());
    /// ```
    #[must_use]
    pub fn with_other(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.other.insert(key.into(), value.into());
        self
    }

    /// Returns whether the key of an extension selects `value`: it holds the value itself, a list with the value, or `true` for
    /// all values.
    #[doc(hidden)]
    #[must_use]
    pub fn has_other(&self, key: &str, value: &Value) -> bool {
        match self.other.get(key) {
            Some(Value::Bool(all)) if !value.is_boolean() => *all,
            Some(Value::Array(values)) => values.contains(value),
            asked => asked == Some(value),
        }
    }

    /// Returns the part of the filter that a server with these capabilities supports, without the keys of extensions.
    #[doc(hidden)]
    #[must_use]
    pub fn narrowed(mut self, capabilities: &ServerCapabilities) -> Self {
        let tools = capabilities.tools.as_ref();
        let prompts = capabilities.prompts.as_ref();
        let resources = capabilities.resources.as_ref();
        self.tools_list_changed &= tools.is_some_and(|it| it.list_changed);
        self.prompts_list_changed &= prompts.is_some_and(|it| it.list_changed);
        self.resources_list_changed &= resources.is_some_and(|it| it.list_changed);
        if !resources.is_some_and(|it| it.subscribe) {
            self.resource_subscriptions = Vec::new();
        }
        self.other = JsonObject::new();
        self
    }

    /// Returns the notifications that both filters select, without the keys of extensions.
    #[doc(hidden)]
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let uris = self.resource_subscriptions.iter();
        let uris = uris.filter(|uri| other.resource_subscriptions.contains(uri));
        Self {
            tools_list_changed: self.tools_list_changed && other.tools_list_changed,
            prompts_list_changed: self.prompts_list_changed && other.prompts_list_changed,
            resources_list_changed: self.resources_list_changed && other.resources_list_changed,
            resource_subscriptions: uris.cloned().collect(),
            other: JsonObject::new(),
        }
    }

    /// Adds the notifications that `other` selects, except for its keys of extensions.
    #[doc(hidden)]
    pub fn merge(&mut self, other: Self) {
        self.tools_list_changed |= other.tools_list_changed;
        self.prompts_list_changed |= other.prompts_list_changed;
        self.resources_list_changed |= other.resources_list_changed;
        for uri in other.resource_subscriptions {
            if !self.resource_subscriptions.contains(&uri) {
                self.resource_subscriptions.push(uri);
            }
        }
    }
}

/// The params of `subscriptions/listen`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListenParams {
    /// The notifications that the client subscribes to.
    pub notifications: SubscriptionFilter,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl ListenParams {
    /// Creates the params for a filter.
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
    /// Metadata of the protocol and of extensions (`_meta`), with the id of the request at [`Meta::SUBSCRIPTION_ID`].
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

/// The params of `notifications/subscriptions/acknowledged`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AcknowledgedParams {
    /// The part of the filter that the server agreed to.
    pub notifications: SubscriptionFilter,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl AcknowledgedParams {
    /// Creates the params that acknowledge a filter.
    #[must_use]
    pub fn new(notifications: SubscriptionFilter) -> Self {
        Self {
            notifications,
            meta: Meta::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::capabilities::{ResourcesCapability, ToolsCapability};

    fn all() -> SubscriptionFilter {
        let mut all = SubscriptionFilter::default()
            .with_tools_list_changed(true)
            .with_prompts_list_changed(true)
            .with_resources_list_changed(true)
            .with_resource_subscription("file:///a");
        all.other.insert("taskIds".into(), true.into());
        all
    }

    #[test]
    fn filter_is_narrowed_to_declared_capabilities() {
        let none = ServerCapabilities::default();
        assert!(all().narrowed(&none).is_empty());
        let silent = none.clone().with_tools(ToolsCapability::default());
        assert!(all().narrowed(&silent).is_empty());

        let list_changed = true;
        let tools = none.clone().with_tools(ToolsCapability { list_changed });
        let wanted = SubscriptionFilter::default().with_tools_list_changed(true);
        assert_eq!(all().narrowed(&tools), wanted);
        assert!(SubscriptionFilter::default().narrowed(&tools).is_empty());

        let resources = ResourcesCapability {
            subscribe: true,
            ..ResourcesCapability::default()
        };
        let wanted = SubscriptionFilter::default().with_resource_subscription("file:///a");
        assert_eq!(all().narrowed(&none.with_resources(resources)), wanted);
    }

    #[test]
    fn filters_are_sets() {
        let a = SubscriptionFilter::default()
            .with_tools_list_changed(true)
            .with_resource_subscription("file:///a");
        let mut b = SubscriptionFilter::default()
            .with_prompts_list_changed(true)
            .with_resource_subscription("file:///b");
        assert!(a.and(&b).is_empty());
        b.merge(a.clone());
        b.merge(a.clone());
        assert_eq!(b.and(&a), a);
        assert_eq!(b.resource_subscriptions, ["file:///b", "file:///a"]);
    }
}
