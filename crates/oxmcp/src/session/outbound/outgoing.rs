//! An outgoing message on its way to the middleware, and the outlet that sends it afterwards.

use std::{borrow::Cow, sync::Arc};

use serde_json::value::RawValue;

use crate::{
    error::Result,
    session::{middleware::response::Response, outbound::options::CallOptions, task::BoxFuture},
};

/// The end of the outgoing middleware: a connection, or an incoming request, whose notifications precede its response.
pub(crate) trait Outlet: Send + Sync {
    /// Sends a message. It is a request if it has options, and otherwise a notification.
    fn send(
        self: Arc<Self>,
        method: Cow<'static, str>,
        params: Box<RawValue>,
        options: Option<CallOptions>,
    ) -> BoxFuture<Result<Response>>;
}

/// An outgoing request, or without options a notification.
pub(crate) struct Outgoing {
    pub(crate) outlet: Arc<dyn Outlet>,
    pub(crate) method: Cow<'static, str>,
    pub(crate) params: Box<RawValue>,
    pub(crate) options: Option<Box<CallOptions>>,
}

impl Outgoing {
    /// Sends the message.
    pub(crate) fn send(self) -> BoxFuture<Result<Response>> {
        let options = self.options.map(|options| *options);
        self.outlet.send(self.method, self.params, options)
    }
}
