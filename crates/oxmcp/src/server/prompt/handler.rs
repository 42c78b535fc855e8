//! Prompt handlers: the types of functions that can be handlers, and the reading of arguments.

use std::{future::Future, sync::Arc};

use oxmcp_protocol::{GetPromptResult, OrderedMap};
use oxmcp_schema::{JsonSchema, Schema, internal::StringFields};
use serde::de::DeserializeOwned;

use super::IntoPromptResult;
use crate::{
    error::Result,
    session::{
        connection::RequestContext,
        handler::traits::{Handler, HandlerContext, HandlerFuture},
        task::BoxFuture,
    },
};

/// The input of a prompt: a struct whose fields are the prompt's arguments.
///
/// Derive both traits: `#[derive(serde::Deserialize, oxmcp::JsonSchema)]`. Doc comments become descriptions. All arguments come
/// as strings, so each field is one of these, or an `Option` of it: a `String` or another type that is a string in JSON, a
/// number, a `bool`, an enum whose variants have no data, or a newtype of these.
#[diagnostic::on_unimplemented(
    message = "a prompt cannot take `{Self}` as its input",
    label = "not an input type",
    note = "derive what it needs: `#[derive(serde::Deserialize, oxmcp::JsonSchema)]`"
)]
pub trait PromptInput: DeserializeOwned + JsonSchema + Send + 'static {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send + 'static> PromptInput for T {}

/// The arguments of a [`Handler`] of prompts: `()`, `(RequestContext,)`, `(Input,)` or `(RequestContext, Input)`.
#[diagnostic::on_unimplemented(
    message = "a prompt's handler cannot take `{Self}`",
    label = "not `(Input)` or `(RequestContext, Input)`",
    note = "a handler is `async fn(Input) -> Output` or `async fn(RequestContext, Input) -> Output`, in this order",
    note = "`Input` is one struct of yours, with a field for each argument: `#[derive(serde::Deserialize, oxmcp::JsonSchema)]`",
    note = "shared state comes first: pass it with `s.with_state(handler)` in `Server::state(shared, |s| …)`, or with `oxmcp::with_state(shared, handler)`"
)]
pub trait PromptArguments: Sized + 'static {
    /// The schema of the input, if there is one.
    #[doc(hidden)]
    fn schema() -> Option<Schema>;

    /// Reads the input, which has been validated.
    #[doc(hidden)]
    fn read(context: RequestContext, json: &str) -> serde_json::Result<Self>;
}

impl PromptArguments for () {
    fn schema() -> Option<Schema> {
        None
    }

    fn read(_context: RequestContext, _json: &str) -> serde_json::Result<Self> {
        Ok(())
    }
}

impl PromptArguments for (RequestContext,) {
    fn schema() -> Option<Schema> {
        None
    }

    fn read(context: RequestContext, _json: &str) -> serde_json::Result<Self> {
        Ok((context,))
    }
}

impl<Input: PromptInput> PromptArguments for (Input,) {
    fn schema() -> Option<Schema> {
        Some(Schema::of::<Input>())
    }

    fn read(_context: RequestContext, json: &str) -> serde_json::Result<Self> {
        Ok((serde_json::from_str(json)?,))
    }
}

impl<Context: HandlerContext, Input: PromptInput> PromptArguments for (Context, Input) {
    fn schema() -> Option<Schema> {
        Some(Schema::of::<Input>())
    }

    fn read(context: RequestContext, json: &str) -> serde_json::Result<Self> {
        Ok((Context::of(context), serde_json::from_str(json)?))
    }
}

/// The arguments of a request, as received.
pub(crate) type Given = OrderedMap<String>;

/// The faults of the arguments of a call, one per line.
pub(crate) type Faults = String;

/// The future of a call whose arguments have been read, or their faults.
pub(crate) type PendingPrompt = Result<BoxFuture<Result<GetPromptResult>>, Faults>;

/// A type-erased handler.
pub(crate) type ErasedHandler = Arc<dyn Fn(RequestContext, Given) -> PendingPrompt + Send + Sync>;

/// Erases the type of a handler that takes `fields`.
pub(crate) fn erase<Arguments, H>(fields: Option<StringFields>, handler: H) -> ErasedHandler
where
    Arguments: PromptArguments,
    H: Handler<Arguments>,
    H::Returned: HandlerFuture<Output: IntoPromptResult> + Send + 'static,
{
    Arc::new(move |context, given| {
        let arguments = match &fields {
            Some(fields) => {
                let object = fields.read(given.iter().map(|(name, text)| (name, text.as_str())))?;
                let read = Arguments::read(context, object.json());
                read.map_err(|error| object.explain(&error))?
            }
            None => Arguments::read(context, "{}").map_err(|error| error.to_string())?,
        };
        let running = handler.call(arguments).run();
        Ok(Box::pin(async move { running.await.into_prompt_result() }))
    })
}

/// Erases the type of a handler that takes the arguments as received.
pub(crate) fn erase_dynamic<F, Fut>(handler: F) -> ErasedHandler
where
    F: Fn(RequestContext, Given) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoPromptResult> + Send + 'static,
{
    Arc::new(move |context, given| {
        let running = handler(context, given);
        Ok(Box::pin(async move { running.await.into_prompt_result() }))
    })
}
