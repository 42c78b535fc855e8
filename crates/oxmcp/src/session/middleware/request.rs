use std::{borrow::Cow, fmt, sync::Arc};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

use super::response::raw;
use crate::{
    Error, Result,
    json::Text,
    protocol::JsonObject,
    session::{CallOptions, Connection, RequestContext},
};

/// A request or a notification, seen by a middleware.
pub struct Request {
    method: Cow<'static, str>,
    params: Option<Box<RawValue>>,
    pub(super) origin: Origin,
}

/// Where a request comes from.
pub(super) enum Origin {
    Incoming(RequestContext),
    /// Options are there for a request and not for a notification.
    Outgoing(Arc<Connection>, Option<Box<CallOptions>>),
    /// A notification on its way out that belongs to a request that came in.
    Told(RequestContext),
}

impl Request {
    pub(crate) fn incoming(
        context: RequestContext,
        method: &str,
        params: Option<Text<'_>>,
    ) -> Self {
        Self {
            method: Cow::Owned(method.to_owned()),
            params: params.map(Text::to_raw),
            origin: Origin::Incoming(context),
        }
    }

    pub(crate) fn outgoing(
        connection: &Arc<Connection>,
        method: &'static str,
        params: &impl Serialize,
        options: CallOptions,
    ) -> Result<Self> {
        let origin = Origin::Outgoing(Arc::clone(connection), Some(Box::new(options)));
        Ok(Self {
            method: Cow::Borrowed(method),
            params: Some(raw(params)?),
            origin,
        })
    }

    pub(crate) fn outgoing_notification(
        connection: &Arc<Connection>,
        method: &'static str,
        params: &impl Serialize,
    ) -> Result<Self> {
        let origin = Origin::Outgoing(Arc::clone(connection), None);
        Ok(Self {
            method: Cow::Borrowed(method),
            params: Some(raw(params)?),
            origin,
        })
    }

    pub(crate) fn told(
        context: &RequestContext,
        method: &'static str,
        params: Box<RawValue>,
    ) -> Self {
        Self {
            method: Cow::Borrowed(method),
            params: Some(params),
            origin: Origin::Told(context.clone()),
        }
    }

    pub(crate) fn into_outgoing(self) -> Result<OutgoingParts> {
        let options = match self.origin {
            Origin::Outgoing(_, options) => options,
            Origin::Told(_) => None,
            Origin::Incoming(_) => {
                return Err(Error::misuse("a request that came in cannot be sent out"));
            }
        };
        let params = match self.params {
            Some(params) => params,
            None => raw(&serde_json::Map::new())?,
        };
        Ok((self.method, params, options.map(|options| *options)))
    }

    /// The method, for example `tools/call`.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Whether nobody waits for a response.
    #[must_use]
    pub fn is_notification(&self) -> bool {
        match &self.origin {
            Origin::Incoming(context) => context.request_id().is_none(),
            Origin::Outgoing(_, options) => options.is_none(),
            Origin::Told(_) => true,
        }
    }

    /// The context that the handler will get. `None` for what is on its way out.
    #[must_use]
    pub fn context(&self) -> Option<&RequestContext> {
        match &self.origin {
            Origin::Incoming(context) => Some(context),
            Origin::Outgoing(..) | Origin::Told(_) => None,
        }
    }

    /// The params as JSON.
    #[must_use]
    pub fn raw_params(&self) -> Option<&RawValue> {
        self.params.as_deref()
    }

    /// The params as a type, for example [`CallToolParams`](crate::protocol::CallToolParams).
    ///
    /// # Errors
    /// [`ErrorCode::INVALID_PARAMS`](crate::ErrorCode::INVALID_PARAMS), where they are not what the type wants.
    pub fn params<T: DeserializeOwned>(&self) -> Result<T> {
        let text = self.params.as_ref().map_or("{}", |params| params.get());
        serde_json::from_str(text)
            .map_err(|error| Error::invalid_params(format!("{}: {error}", self.method)))
    }

    /// Replaces the params. Those of a request on its way out have no `_meta`: see [`set_meta`](Self::set_meta).
    ///
    /// # Errors
    /// Where they cannot be serialized, and where they have a `_meta` that they must not have.
    pub fn set_params(&mut self, params: &impl Serialize) -> Result<()> {
        let params = raw(params)?;
        if let Origin::Outgoing(_, Some(_)) = self.origin
            && Text::from(&*params)
                .members()
                .any(|(key, _)| key.is_str("_meta"))
        {
            return Err(Error::misuse(
                "the _meta of a request on its way out is no part of its params: use `set_meta`",
            ));
        }
        self.params = Some(params);
        Ok(())
    }

    /// Sets a key of the `_meta` of what is on its way out: for what is to be in every request, as a
    /// [trace context](https://modelcontextprotocol.io/specification/2026-07-28/basic#meta) is.
    ///
    /// ```
    /// use oxmcp::{Client, middleware::{self, Next, Request}, protocol::Meta};
    ///
    /// # fn current() -> String { "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into() }
    /// let client = Client::new("traced", "1.0.0").outgoing_layer(middleware::from_fn(
    ///     |mut request: Request, next: Next| async move {
    ///         request.set_meta(Meta::TRACEPARENT, current())?;
    ///         next.run(request).await
    ///     },
    /// ));
    /// # let _ = client;
    /// ```
    ///
    /// # Errors
    /// Where it has come in. [`Next::run`](super::Next::run) refuses keys that the session sets by itself.
    pub fn set_meta(&mut self, key: impl Into<String>, value: impl Into<Value>) -> Result<()> {
        match &mut self.origin {
            Origin::Incoming(_) => {
                return Err(Error::misuse(
                    "the _meta of what has come in is what its sender said",
                ));
            }
            Origin::Outgoing(_, Some(options)) => {
                options.meta.insert(key, value);
            }
            Origin::Outgoing(_, None) | Origin::Told(_) => {
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

/// What the wire needs of a request.
type OutgoingParts = (Cow<'static, str>, Box<RawValue>, Option<CallOptions>);

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}
