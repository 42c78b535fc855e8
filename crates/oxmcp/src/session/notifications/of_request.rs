//! Notifications that belong to a request, other than its progress: they are sent before its response, or not at all.

use std::{borrow::Cow, sync::Arc};

use oxmcp_protocol::internal::write_notification;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    error::Result,
    session::{
        connection::{ContextParts, RequestContext},
        middleware::response::Response,
        outbound::{
            call::not_json,
            options::CallOptions,
            outgoing::{Outgoing, Outlet},
        },
        task::BoxFuture,
    },
};

impl Outlet for ContextParts {
    /// Sends a notification that belongs to the request.
    fn send(
        self: Arc<Self>,
        method: Cow<'static, str>,
        params: Box<RawValue>,
        _: Option<CallOptions>,
    ) -> BoxFuture<Result<Response>> {
        Box::pin(async move {
            self.append_notification(&method, &params).await?;
            Ok(Response::empty())
        })
    }
}

impl ContextParts {
    async fn append_notification(&self, method: &str, params: &RawValue) -> Result<()> {
        let mut message = Vec::new();
        write_notification(&mut message, method, params).map_err(not_json)?;
        let outbox = &self.outlet().outbox;
        outbox.ready().await;
        outbox.append(|out| {
            if !self.is_over() {
                out.extend_from_slice(&message);
            }
        });
        Ok(())
    }
}

impl RequestContext {
    /// Sends a notification that belongs to this request, through the outgoing middleware, if any. Waits for space in the
    /// outbox. Notifications after the response, or after a cancellation by the caller, are dropped.
    ///
    /// Cancel safe: if the future is dropped while it waits for space, nothing has been sent.
    pub(crate) async fn send_notification(
        &self,
        method: impl Into<Cow<'static, str>>,
        params: &impl Serialize,
    ) -> Result<()> {
        let method = method.into();
        // User code must not run under the outbox's lock: it may log.
        let params = to_raw_value(params).map_err(not_json)?;
        let role = self.parts().connection.role();
        if !role.has_outgoing() {
            return self.parts().append_notification(&method, &params).await;
        }
        let message = Outgoing {
            outlet: Arc::clone(self.parts()) as _,
            method,
            params,
            options: None,
        };
        role.pass_outgoing(message).await.map(drop)
    }

    /// Sends a serialized message, if that is possible at once. Returns whether there was space. After the response, a message
    /// goes to the session, if the revision has sessions, or else is dropped.
    #[cfg(feature = "tracing-subscriber")]
    pub(crate) fn try_notify(&self, message: &[u8]) -> bool {
        let parts = self.parts();
        let of_request = parts.peer.revision.is_modern();
        let outlet = if !of_request && parts.is_over() {
            parts.connection.trunk()
        } else {
            parts.outlet()
        };
        outlet.outbox.append_if_room(|out| {
            if !of_request || !parts.is_over() {
                out.extend_from_slice(message);
            }
        })
    }
}
