//! The arguments of the handlers of a server's requests, and the erasure of their types.

use std::sync::Arc;

use oxmcp_protocol::{CreateMessageParams, ElicitFormParams, ElicitUrlParams};

use crate::{
    error::Result,
    session::{
        connection::RequestContext,
        handler::traits::{Handler, HandlerFuture},
        task::BoxFuture,
    },
};

/// The arguments of a [`Handler`] of a server's requests: the params, optionally with a [`RequestContext`], which tells which
/// server asks.
#[diagnostic::on_unimplemented(
    message = "a handler for `{Params}` cannot take `{Self}`",
    label = "expected `({Params})` or `({Params}, RequestContext)`",
    note = "a handler is `async fn({Params}) -> Output` or `async fn({Params}, RequestContext) -> Output`",
    note = "annotate the types of a closure's arguments: `|asked: {Params}| async move {{ … }}`"
)]
pub trait AnswerArguments<Params>: Sized + 'static {
    /// The arguments for a request's params.
    #[doc(hidden)]
    fn of(params: Params, context: RequestContext) -> Self;
}

macro_rules! arguments {
    ($($params:ty)*) => {$(
        impl AnswerArguments<$params> for ($params,) {
            fn of(params: $params, _context: RequestContext) -> Self {
                (params,)
            }
        }

        impl AnswerArguments<$params> for ($params, RequestContext) {
            fn of(params: $params, context: RequestContext) -> Self {
                (params, context)
            }
        }

        /// The order that the handlers of servers have.
        impl AnswerArguments<$params> for (RequestContext, $params) {
            fn of(params: $params, context: RequestContext) -> Self {
                (context, params)
            }
        }
    )*};
}

arguments!(ElicitFormParams ElicitUrlParams CreateMessageParams);

/// A handler of a server's request, with its type erased.
pub(crate) type ErasedHandler<Params, Answer> =
    Arc<dyn Fn(Params, RequestContext) -> BoxFuture<Result<Answer>> + Send + Sync>;

/// Erases the type of a handler. `finish` turns its output into the result.
pub(crate) fn erase<Arguments, Params, Answer, H>(
    handler: H,
    finish: fn(<H::Returned as HandlerFuture>::Output) -> Result<Answer>,
) -> ErasedHandler<Params, Answer>
where
    Arguments: AnswerArguments<Params>,
    Params: Send + 'static,
    Answer: 'static,
    H: Handler<Arguments>,
    H::Returned: HandlerFuture + Send + 'static,
{
    let handler = Arc::new(handler);
    Arc::new(move |params, context| {
        let handler = Arc::clone(&handler);
        // The user's code is called when the future is polled, where panics are caught.
        Box::pin(async move {
            let running = handler.call(Arguments::of(params, context)).run();
            finish(running.await)
        })
    })
}
