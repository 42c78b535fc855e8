//! A request or a notification in the middleware: its method, params and metadata.

use std::{borrow::Cow, sync::Arc};

use oxmcp_json::Text;
use oxmcp_protocol::JsonObject;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

use crate::{
    debug::opaque_debug,
    error::{Error, Result, plain_decode_error},
    session::{
        connection::RequestContext,
        middleware::response::{Response, raw},
        outbound::{
            options::CallOptions,
            outgoing::{Outgoing, Outlet},
        },
        task::BoxFuture,
    },
};

/// A request or a notification in the middleware.
pub struct Request {
    method: Cow<'static, str>,
    params: Option<Box<RawValue>>,
    /// The params as they were received, if a middleware has replaced them.
    #[cfg(all(feature = "auth", feature = "http-server"))]
    original: Option<Box<RawValue>>,
    pub(crate) direction: Direction,
}

/// The direction of a [`Request`].
pub(crate) enum Direction {
    Incoming(RequestContext, Handle),
    /// The options are set for a request and not for a notification.
    Outgoing(Arc<dyn Outlet>, Option<Box<CallOptions>>),
}

/// The function of a role that handles a request after all incoming middleware. It finds the role through the context.
pub(crate) type Handle = fn(Request) -> BoxFuture<Result<Response>>;

impl Request {
    pub(crate) fn incoming(
        context: RequestContext,
        handle: Handle,
        method: &str,
        params: Option<Text<'_>>,
    ) -> Self {
        Self {
            method: Cow::Owned(method.to_owned()),
            params: params.map(Text::to_raw),
            #[cfg(all(feature = "auth", feature = "http-server"))]
            original: None,
            direction: Direction::Incoming(context, handle),
        }
    }

    pub(crate) fn outgoing(message: Outgoing) -> Self {
        Self {
            method: message.method,
            params: Some(message.params),
            #[cfg(all(feature = "auth", feature = "http-server"))]
            original: None,
            direction: Direction::Outgoing(message.outlet, message.options),
        }
    }

    /// The outgoing message. `None` if the request is incoming.
    pub(crate) fn into_outgoing(self) -> Option<Outgoing> {
        let Direction::Outgoing(outlet, options) = self.direction else {
            return None;
        };
        Some(Outgoing {
            outlet,
            method: self.method,
            // Outgoing messages always have params.
            params: self.params?,
            options,
        })
    }

    /// Returns the method, for example `tools/call`.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Returns whether this is a notification, which has no response.
    #[must_use]
    pub fn is_notification(&self) -> bool {
        match &self.direction {
            Direction::Incoming(context, _) => context.request_id().is_none(),
            Direction::Outgoing(_, options) => options.is_none(),
        }
    }

    /// Returns the context of the handler. `None` for outgoing messages.
    #[must_use]
    pub fn context(&self) -> Option<&RequestContext> {
        match &self.direction {
            Direction::Incoming(context, _) => Some(context),
            Direction::Outgoing(..) => None,
        }
    }

    /// Returns the params as JSON.
    #[must_use]
    pub fn raw_params(&self) -> Option<&RawValue> {
        self.params.as_deref()
    }

    /// The params as they were received, if they have been replaced.
    #[cfg(all(feature = "auth", feature = "http-server"))]
    pub(crate) fn original_params(&self) -> Option<&RawValue> {
        self.original.as_deref()
    }

    /// Deserializes the params, for example as [`CallToolParams`](oxmcp_protocol::CallToolParams).
    ///
    /// # Errors
    /// [`ErrorCode::INVALID_PARAMS`](crate::ErrorCode::INVALID_PARAMS), if they do not match the type.
    pub fn params<T: DeserializeOwned>(&self) -> Result<T> {
        let text = self.params.as_ref().map_or("{}", |params| params.get());
        serde_json::from_str(text).map_err(|error| {
            let why = plain_decode_error(&error);
            Error::invalid_params(format!("invalid params of {}: {why}", self.method))
        })
    }

    /// Replaces the params. Those of an outgoing request must not have a `_meta`: see [`set_meta`](Self::set_meta).
    ///
    /// # Errors
    /// If they cannot be serialized, or if they have a `_meta` and must not.
    pub fn set_params(&mut self, params: &impl Serialize) -> Result<()> {
        let params = raw(params)?;
        if let Direction::Outgoing(_, Some(_)) = self.direction
            && Text::from(&*params)
                .members()
                .any(|(key, _)| key.is_str("_meta"))
        {
            return Err(Error::misuse(
                "cannot set `_meta` in the params of an outgoing request; use `set_meta`",
            ));
        }
        #[cfg(all(feature = "auth", feature = "http-server"))]
        if let Direction::Incoming(..) = self.direction {
            let before = self.params.take();
            let before = before.unwrap_or_else(|| RawValue::NULL.to_owned());
            self.original.get_or_insert(before);
        }
        self.params = Some(params);
        Ok(())
    }

    /// Sets a key of the [`_meta`](https://modelcontextprotocol.io/specification/2026-07-28/basic#meta) of an outgoing message,
    /// for example for every request. The trace context is sent by [`trace`](crate::trace).
    ///
    /// ```
    /// use oxmcp::{Client, middleware::{self, Next, Request}};
    ///
    /// let client = Client::new("tenant", "1.0.0").outgoing_layer(middleware::from_fn(
    ///     |mut request: Request, next: Next| async move {
    ///         request.set_meta("com.example/tenant", "moon")?;
    ///         next.run(request).await
    ///     },
    /// ));
    /// # let _ = client;
    /// ```
    ///
    /// # Errors
    /// If the message is incoming. [`Next::run`](super::Next::run) refuses keys that the session itself sets.
    pub fn set_meta(&mut self, key: impl Into<String>, value: impl Into<Value>) -> Result<()> {
        match &mut self.direction {
            Direction::Incoming(..) => {
                return Err(Error::misuse(
                    "cannot change the `_meta` of an incoming message",
                ));
            }
            Direction::Outgoing(_, Some(options)) => {
                options.meta.insert(key, value);
            }
            Direction::Outgoing(_, None) => {
                let mut params: JsonObject = self.params()?;
                let meta = params
                    .entry("_meta")
                    .or_insert_with(|| Value::Object(JsonObject::new()));
                if let Value::Object(meta) = meta {
                    meta.insert(key.into(), value.into());
                }
                self.params = Some(raw(&params)?);
            }
        }
        Ok(())
    }
}

opaque_debug!(Request, |it| { method: it.method });
