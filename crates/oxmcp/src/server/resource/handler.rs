//! Resource handlers: the types of functions that can handle a resource or a template, and the reading of arguments.

use std::{
    future::Future,
    sync::{Arc, OnceLock},
};

use oxmcp_protocol::{ReadResourceResult, ResourceNotFoundData, uri_template::Captures};
use oxmcp_schema::{JsonSchema, Schema, internal::StringFields};
use serde::de::DeserializeOwned;
use tokio::sync::OwnedSemaphorePermit;

use super::{IntoResourceResult, TemplateVariables};
use crate::{
    error::{Error, Result},
    session::{
        connection::RequestContext,
        handler::traits::{Handler, HandlerContext, HandlerFuture},
        task::BoxFuture,
    },
};

/// The arguments of a [`Handler`] of resources: `()` or `(RequestContext,)`.
#[diagnostic::on_unimplemented(
    message = "a resource's handler cannot take `{Self}`",
    label = "not `()` or `(RequestContext)`",
    note = "a handler is `async fn() -> Output` or `async fn(RequestContext) -> Output`; what is read is known by its URI",
    note = "for many resources with one handler, use a `ResourceTemplate`",
    note = "shared state comes first: pass it with `s.with_state(handler)` in `Server::state(shared, |s| …)`, or with `oxmcp::with_state(shared, handler)`"
)]
pub trait ResourceArguments: Sized + 'static {
    /// Creates the arguments.
    #[doc(hidden)]
    fn of(context: RequestContext) -> Self;
}

impl ResourceArguments for () {
    fn of(_context: RequestContext) -> Self {}
}

impl<Context: HandlerContext> ResourceArguments for (Context,) {
    fn of(context: RequestContext) -> Self {
        (Context::of(context),)
    }
}

/// The input of a template's handler: a struct with a field for each variable.
///
/// Derive both: `#[derive(serde::Deserialize, oxmcp::JsonSchema)]`. In a URI everything is a string, so the type of a field
/// must be one of these, or an `Option` of it: a `String` or another type that is a string in JSON, a number, a `bool`, an enum
/// whose variants have no data, or a newtype of these; and a `Vec` of them for `{variable*}`.
#[diagnostic::on_unimplemented(
    message = "a resource template cannot take `{Self}` as its input",
    label = "not an input type",
    note = "derive what it needs: `#[derive(serde::Deserialize, oxmcp::JsonSchema)]`"
)]
pub trait TemplateInput: DeserializeOwned + JsonSchema + Send + 'static {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send + 'static> TemplateInput for T {}

/// The arguments of a [`Handler`] of resource templates: `(Input,)` or `(RequestContext, Input)`.
#[diagnostic::on_unimplemented(
    message = "a resource template's handler cannot take `{Self}`",
    label = "not `(Input)` or `(RequestContext, Input)`",
    note = "a handler is `async fn(Input) -> Output` or `async fn(RequestContext, Input) -> Output`, in this order",
    note = "`Input` is one struct of yours, with a field for each variable: `#[derive(serde::Deserialize, oxmcp::JsonSchema)]`",
    note = "shared state comes first: pass it with `s.with_state(handler)` in `Server::state(shared, |s| …)`, or with `oxmcp::with_state(shared, handler)`"
)]
pub trait TemplateArguments: Sized + 'static {
    /// The schema of the input.
    #[doc(hidden)]
    fn schema() -> Schema;

    /// Deserializes the input, which has been validated.
    #[doc(hidden)]
    fn read(context: RequestContext, json: &str) -> serde_json::Result<Self>;
}

impl<Input: TemplateInput> TemplateArguments for (Input,) {
    fn schema() -> Schema {
        Schema::of::<Input>()
    }

    fn read(_context: RequestContext, json: &str) -> serde_json::Result<Self> {
        Ok((serde_json::from_str(json)?,))
    }
}

impl<Context: HandlerContext, Input: TemplateInput> TemplateArguments for (Context, Input) {
    fn schema() -> Schema {
        Schema::of::<Input>()
    }

    fn read(context: RequestContext, json: &str) -> serde_json::Result<Self> {
        Ok((Context::of(context), serde_json::from_str(json)?))
    }
}

/// The resource to read. Cheap to clone, so that a handler can be called again.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) uri: Arc<str>,
    /// The variables of a template, not decoded yet.
    pub(crate) captures: Arc<Captures>,
    /// The permit that the handler holds until its result has been encoded.
    pub(crate) held: Held,
}

/// See [`Target::held`].
pub(crate) type Held = Arc<OnceLock<OwnedSemaphorePermit>>;

impl Target {
    pub(crate) fn new(uri: &str, captures: Captures) -> Self {
        Self {
            uri: uri.into(),
            captures: captures.into(),
            held: Held::default(),
        }
    }
}

/// A started read, or the reason why it could not start.
pub(crate) type PendingRead = Result<BoxFuture<Result<ReadResourceResult>>>;

/// A type-erased handler.
pub(crate) type ErasedHandler = Arc<dyn Fn(RequestContext, Target) -> PendingRead + Send + Sync>;

/// Erases the type of a handler of one resource.
pub(crate) fn erase<Arguments, H>(handler: H) -> ErasedHandler
where
    Arguments: ResourceArguments,
    H: Handler<Arguments>,
    H::Returned: HandlerFuture<Output: IntoResourceResult> + Send + 'static,
{
    Arc::new(move |context, target| {
        let running = handler.call(Arguments::of(context)).run();
        Ok(Box::pin(async move {
            running.await.into_resource_result(&target.uri)
        }))
    })
}

/// Erases the type of a template's handler that takes `fields`.
pub(crate) fn erase_typed<Arguments, H>(fields: StringFields, handler: H) -> ErasedHandler
where
    Arguments: TemplateArguments,
    H: Handler<Arguments>,
    H::Returned: HandlerFuture<Output: IntoResourceResult> + Send + 'static,
{
    Arc::new(move |context, target| {
        let no_such = |wrong: String| no_such(&target.uri, &wrong);
        let variables = TemplateVariables::of(&target.uri, &target.captures).map_err(no_such)?;
        let object = fields.read_lists(variables.given()).map_err(no_such)?;
        let arguments = Arguments::read(context, object.json());
        let arguments = arguments.map_err(|error| no_such(object.explain(&error)))?;
        let running = handler.call(arguments).run();
        Ok(Box::pin(async move {
            running.await.into_resource_result(&target.uri)
        }))
    })
}

/// Erases the type of a handler of any URI.
pub(crate) fn erase_fallback<F, Fut>(handler: F) -> ErasedHandler
where
    F: Fn(RequestContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoResourceResult> + Send + 'static,
{
    Arc::new(move |context, target| {
        let running = handler(context, target.uri.as_ref().to_owned());
        Ok(Box::pin(async move {
            running.await.into_resource_result(&target.uri)
        }))
    })
}

/// Erases the type of a template's handler that takes the variables as strings.
pub(crate) fn erase_dynamic<F, Fut>(handler: F) -> ErasedHandler
where
    F: Fn(RequestContext, TemplateVariables) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoResourceResult> + Send + 'static,
{
    Arc::new(move |context, target| {
        let variables = TemplateVariables::of(&target.uri, &target.captures);
        let variables = variables.map_err(|wrong| no_such(&target.uri, &wrong))?;
        let running = handler(context, variables);
        Ok(Box::pin(async move {
            running.await.into_resource_result(&target.uri)
        }))
    })
}

/// The error for a resource that does not exist, with the reason.
pub(crate) fn no_such(uri: &str, wrong: &str) -> Error {
    let error = Error::resource_not_found(uri);
    let message = format!("{}\n{wrong}", error.message());
    Error::protocol(error.code(), message).with_data(ResourceNotFoundData::new(uri))
}
