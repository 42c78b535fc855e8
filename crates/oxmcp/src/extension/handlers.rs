//! The handlers of an extension: their arguments, results, and type erasure.

use std::{fmt, sync::Arc};

use oxmcp_json::Text;
use oxmcp_protocol::{
    Method, Notification, Payload, Revision,
    internal::{encode_payload, into_text},
};
#[cfg(feature = "http-server")]
use oxmcp_protocol::{OrderedMap, RawJson};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    error::{Error, Result, plain_decode_error},
    logged::Logged,
    session::{
        connection::RequestContext,
        handler::traits::{Handler, HandlerContext, HandlerFuture, IntoError},
        inbound::{body::Body, inline_execution::InlineExecution},
        task::BoxFuture,
    },
};

/// The arguments of a [`Handler`] of an extension's method or notification: `()`, `(RequestContext,)`,
/// `(Params,)` or `(RequestContext, Params)`.
#[diagnostic::on_unimplemented(
    message = "the handler of a method with the params `{Params}` cannot take `{Self}`",
    label = "not `(Params)` or `(RequestContext, Params)`",
    note = "`Params` are those of the method or the notification"
)]
pub trait ExtensionArguments<Params>: Sized + Send + 'static {
    /// Deserializes the params.
    #[doc(hidden)]
    fn read(context: RequestContext, params: &str) -> serde_json::Result<Self>;
}

impl<Params> ExtensionArguments<Params> for () {
    fn read(_context: RequestContext, _params: &str) -> serde_json::Result<Self> {
        Ok(())
    }
}

impl<Params> ExtensionArguments<Params> for (RequestContext,) {
    fn read(context: RequestContext, _params: &str) -> serde_json::Result<Self> {
        Ok((context,))
    }
}

impl<Params: Payload + DeserializeOwned + 'static> ExtensionArguments<Params> for (Params,) {
    fn read(_context: RequestContext, params: &str) -> serde_json::Result<Self> {
        Params::from_json(params).map(|params| (params,))
    }
}

impl<Context, Params> ExtensionArguments<Params> for (Context, Params)
where
    Context: HandlerContext + Send,
    Params: Payload + DeserializeOwned + 'static,
{
    fn read(context: RequestContext, params: &str) -> serde_json::Result<Self> {
        Params::from_json(params).map(|params| (Context::of(context), params))
    }
}

/// The result of a handler of an extension's method: the method's result, or a `Result` of it with an [`Error`] or any other
/// [`std::error::Error`].
#[diagnostic::on_unimplemented(
    message = "the handler of a method whose result is `{Answer}` cannot return `{Self}`",
    label = "neither `{Answer}` nor a `Result` of it",
    note = "return `{Answer}`, or a `Result<{Answer}, _>` with an error that is a `std::error::Error`"
)]
pub trait IntoAnswer<Answer> {
    /// Converts to the result of the method.
    #[doc(hidden)]
    fn into_answer(self) -> Result<Answer>;
}

impl<Answer> IntoAnswer<Answer> for Answer {
    fn into_answer(self) -> Result<Answer> {
        Ok(self)
    }
}

impl<Answer, E: IntoError> IntoAnswer<Answer> for Result<Answer, E> {
    fn into_answer(self) -> Result<Answer> {
        self.map_err(IntoError::into_error)
    }
}

/// The handler of a method, with its type erased: it deserializes the params and starts the work.
type MethodHandler =
    Arc<dyn Fn(RequestContext, Text<'_>) -> Result<BoxFuture<Result<Body>>> + Send + Sync>;

/// The handler of a notification, with its type erased. `None` if the params cannot be read.
type NotificationHandler =
    Arc<dyn Fn(RequestContext, Text<'_>) -> Option<BoxFuture<()>> + Send + Sync>;

/// A function that returns the part of a filter's value that is granted to the caller.
pub(crate) type Grant = Arc<dyn Fn(&RequestContext, Value) -> Result<Option<Value>> + Send + Sync>;

/// The name of a method or notification, and the revisions that have it.
#[derive(Clone)]
pub(crate) struct VersionedName {
    pub(crate) name: &'static str,
    pub(crate) revisions: Vec<Revision>,
}

impl VersionedName {
    pub(crate) fn is_in(&self, name: &str, revision: Revision) -> bool {
        self.name == name && self.revisions.contains(&revision)
    }

    /// Whether a revision has both, under the same name.
    pub(crate) fn clashes(&self, other: &Self) -> bool {
        let mut revisions = self.revisions.iter();
        revisions.any(|revision| other.is_in(self.name, *revision))
    }
}

/// A method that this side serves.
#[derive(Clone)]
pub(crate) struct ServedMethod {
    pub(crate) name: VersionedName,
    pub(crate) handler: MethodHandler,
    /// Tracks how fast the handler is.
    pub(crate) inline: Arc<InlineExecution>,
}

impl ServedMethod {
    pub(crate) fn new<M, Arguments, H>(revisions: Vec<Revision>, handler: H) -> Self
    where
        M: Method,
        Arguments: ExtensionArguments<M::Params>,
        H: Handler<Arguments>,
        H::Returned: HandlerFuture<Output: IntoAnswer<M::Result>> + Send + 'static,
    {
        let handler = move |context: RequestContext, params: Text<'_>| {
            must_be_object(M::NAME, params)?;
            let arguments = Arguments::read(context.clone(), params.get())
                .map_err(|error| unfit(M::NAME, &plain_decode_error(&error)))?;
            let running = handler.call(arguments).run();
            let future: BoxFuture<Result<Body>> = Box::pin(async move {
                let answer = running.await.into_answer()?;
                encode(&context, answer)
            });
            Ok(future)
        };
        Self::erased(M::NAME, revisions, handler)
    }

    /// A method whose handler deserializes its params itself.
    pub(crate) fn erased(
        name: &'static str,
        revisions: Vec<Revision>,
        handler: impl Fn(RequestContext, Text<'_>) -> Result<BoxFuture<Result<Body>>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self {
            name: VersionedName { name, revisions },
            handler: Arc::new(handler),
            inline: Arc::new(InlineExecution::new()),
        }
    }

    /// Begins to serve a request.
    pub(crate) fn begin(
        &self,
        context: RequestContext,
        params: Text<'_>,
    ) -> Result<BoxFuture<Result<Body>>> {
        (self.handler)(context, params)
    }

    pub(crate) fn inline_execution(&self) -> &Arc<InlineExecution> {
        &self.inline
    }
}

/// Rejects params that are not an object: serde would read an array as the members of a struct, in order.
pub(crate) fn must_be_object(name: &str, params: Text<'_>) -> Result<()> {
    if params.is_object() {
        return Ok(());
    }
    Err(unfit(name, &"expected an object"))
}

pub(crate) fn unfit(name: &str, why: &dyn fmt::Display) -> Error {
    Error::invalid_params(format!("invalid params of {name}: {why}"))
}

/// Encodes the result of a method, in the form of the peer's revision.
pub(crate) fn encode(context: &RequestContext, mut answer: impl Payload) -> Result<Body> {
    let mut out = Vec::new();
    let server_info = context.parts().connection.role().server_info();
    encode_payload(&mut out, &mut answer, context.revision(), server_info)?;
    Ok(Body::Json(into_text(out)?))
}

/// A notification that this side handles.
#[derive(Clone)]
pub(crate) struct ServedNotification {
    pub(crate) name: VersionedName,
    pub(crate) handler: NotificationHandler,
}

impl ServedNotification {
    pub(crate) fn new<N, Arguments, H>(revisions: Vec<Revision>, handler: H) -> Self
    where
        N: Notification,
        Arguments: ExtensionArguments<N::Params>,
        H: Handler<Arguments>,
        H::Returned: HandlerFuture<Output = ()> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let erased = move |context: RequestContext, params: Text<'_>| {
            let arguments = Arguments::read(context, params.get()).map_err(|error| {
                tracing::debug!(method = N::NAME, error = %Logged(&error), "ignoring a malformed notification");
            });
            let arguments = arguments.ok()?;
            let handler = Arc::clone(&handler);
            // The user's code runs on the notification queue, which catches its panics.
            let run: BoxFuture<()> = Box::pin(async move { handler.call(arguments).run().await });
            Some(run)
        };
        let name = N::NAME;
        Self {
            name: VersionedName { name, revisions },
            handler: Arc::new(erased),
        }
    }
}

/// A key of subscription filters.
#[derive(Clone)]
pub(crate) struct FilterKey {
    pub(crate) key: String,
    pub(crate) grant: Grant,
}

/// The notification that a node sends to its own subscriptions when another node has published a value under a key.
#[cfg(feature = "http-server")]
#[derive(Clone)]
pub(crate) struct Republished {
    pub(crate) key: String,
    pub(crate) name: &'static str,
    pub(crate) params: Republish,
}

#[cfg(feature = "http-server")]
type Republish = Arc<dyn Fn(Value) -> BoxFuture<Option<OrderedMap<RawJson>>> + Send + Sync>;

#[cfg(feature = "http-server")]
impl Republished {
    pub(crate) fn new<N: Notification, F>(
        key: String,
        params: impl Fn(Value) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Option<N::Params>> + Send + 'static,
    {
        let params = move |value| -> BoxFuture<Option<OrderedMap<RawJson>>> {
            let params = params(value);
            Box::pin(async move {
                let written = RawJson::new(&params.await?).ok();
                let members = written.and_then(|it| serde_json::from_str(it.get()).ok());
                if members.is_none() {
                    tracing::error!(
                        notification = N::NAME,
                        "params of a republished notification are not an object"
                    );
                }
                members
            })
        };
        Self {
            key,
            name: N::NAME,
            params: Arc::new(params),
        }
    }

    /// The params for a value. `None` if nothing should be sent.
    pub(crate) async fn params(&self, value: Value) -> Option<OrderedMap<RawJson>> {
        (self.params)(value).await
    }
}

/// An HTTP header that repeats a member of a method's params.
#[derive(Clone, Debug)]
pub(crate) struct MirroredHeader {
    pub(crate) method: &'static str,
    pub(crate) member: String,
    pub(crate) header: String,
}
