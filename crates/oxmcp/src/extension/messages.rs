//! Notifications of extensions on their way out.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::{
    Error, Result,
    protocol::{JsonObject, Notification, method},
    session::Connection,
};

/// The params of a notification as an object, so that they can be sent to several, each with a `_meta` of its own.
///
/// # Errors
/// Where the notification is the protocol's own, or its params are no object.
pub(crate) fn members<N: Notification>(params: impl Serialize) -> Result<JsonObject> {
    let tables = [
        method::NOTIFICATIONS_TO_CLIENT,
        method::NOTIFICATIONS_TO_SERVER,
    ];
    let name = N::NAME;
    if tables
        .iter()
        .any(|table| method::find(table, name).is_some())
    {
        return Err(Error::misuse(format!(
            "{name} is the protocol's own, and is sent by what it tells of; this sends notifications of extensions"
        )));
    }
    match serde_json::to_value(params) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(Value::Null) => Ok(JsonObject::new()),
        _ => Err(Error::misuse(format!(
            "the params of {name} must be an object"
        ))),
    }
}

/// Sends a notification of an extension.
///
/// Cancel safe: dropped while it waits for room, nothing has been sent.
pub(crate) async fn say(
    connection: &Arc<Connection>,
    name: &'static str,
    mut params: JsonObject,
    meta: JsonObject,
) -> Result<()> {
    if !meta.is_empty() {
        let own = params
            .entry("_meta")
            .or_insert_with(|| JsonObject::new().into());
        if let Value::Object(own) = own {
            own.extend(meta);
        }
    }
    connection.notify(name, params).await
}
