//! The traits of handlers: async functions with a context and an input, and their errors.

use std::{error::Error as StdError, future::Future, sync::Arc};

use crate::{error::Error, session::connection::RequestContext};

/// An async function that can be the handler of a tool, a prompt or a resource, or a client's handler of a server's request.
///
/// It is implemented for functions and closures of
/// - `(Input)`,
/// - `(RequestContext, Input)`,
/// - `(RequestContext)` and `()`, if there is no input,
///
/// that return a [`HandlerFuture`]. The permitted inputs and results depend on the kind of handler. You can ignore `Arguments`:
/// they are those of the function.
///
/// Shared state, such as a database, comes before these arguments; pass it with [`with_state`](crate::session::with_state). A
/// closure can also capture it. Because one handler serves all requests, the closure must clone it for each.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler",
    label = "not an async function of `(Input)` or `(RequestContext, Input)`",
    note = "a handler is `async fn(Input) -> Output` or `async fn(RequestContext, Input) -> Output`; put all arguments into one `Input`",
    note = "all requests share the handler: a closure must be `Fn + Send + Sync + 'static`, so clone captured values into the future"
)]
pub trait Handler<Arguments>: Send + Sync + 'static {
    /// The return value of the function: a future, if the function is async.
    type Returned;

    /// Calls the function.
    #[doc(hidden)]
    fn call(&self, arguments: Arguments) -> Self::Returned;
}

// These implementations require only the number of arguments, so that the compiler selects one of them at once, and then
// reports exactly which bound is not met.

impl<F: Fn() -> R + Send + Sync + 'static, R> Handler<()> for F {
    type Returned = R;

    fn call(&self, (): ()) -> R {
        self()
    }
}

impl<F: Fn(A) -> R + Send + Sync + 'static, A, R> Handler<(A,)> for F {
    type Returned = R;

    fn call(&self, (only,): (A,)) -> R {
        self(only)
    }
}

impl<F: Fn(A, B) -> R + Send + Sync + 'static, A, B, R> Handler<(A, B)> for F {
    type Returned = R;

    fn call(&self, (first, second): (A, B)) -> R {
        self(first, second)
    }
}

// For the state before the other two arguments; no kind of handler takes three arguments directly.
impl<F: Fn(A, B, C) -> R + Send + Sync + 'static, A, B, C, R> Handler<(A, B, C)> for F {
    type Returned = R;

    fn call(&self, (first, second, third): (A, B, C)) -> R {
        self(first, second, third)
    }
}

/// The argument that a handler may take before its input: a [`RequestContext`].
#[diagnostic::on_unimplemented(
    message = "the first of a handler's two arguments must be `RequestContext`, not `{Self}`",
    label = "not a `RequestContext`",
    note = "a handler is `async fn(Input) -> Output` or `async fn(RequestContext, Input) -> Output`, in this order",
    note = "`Input` is one type for all arguments: `#[derive(serde::Deserialize, oxmcp::JsonSchema)]`",
    note = "shared state comes first: pass it with `s.with_state(handler)` in `Server::state(shared, |s| …)`, or with `oxmcp::with_state(shared, handler)`"
)]
pub trait HandlerContext: Sized + 'static {
    /// Creates the context argument.
    #[doc(hidden)]
    fn of(context: RequestContext) -> Self;
}

impl HandlerContext for RequestContext {
    fn of(context: RequestContext) -> Self {
        context
    }
}

impl HandlerContext for Arc<RequestContext> {
    fn of(context: RequestContext) -> Self {
        Self::new(context)
    }
}

/// The return value of an async function: any future.
#[diagnostic::on_unimplemented(
    message = "a handler must be async, but this one returns `{Self}`",
    label = "not an async function",
    note = "write `async fn`, or a closure whose body is `async move {{ … }}`"
)]
pub trait HandlerFuture {
    /// The output of the future.
    type Output;

    /// Runs the function.
    #[doc(hidden)]
    fn run(self) -> impl Future<Output = Self::Output> + Send
    where
        Self: Send + 'static;
}

#[diagnostic::do_not_recommend]
impl<F: Future> HandlerFuture for F {
    type Output = F::Output;

    fn run(self) -> impl Future<Output = Self::Output> + Send
    where
        Self: Send + 'static,
    {
        self
    }
}

/// An error of a handler other than a tool's: an [`Error`], which is sent to the peer unchanged, or any other
/// [`std::error::Error`], whose text is sent to the peer with the code [`INTERNAL_ERROR`](crate::ErrorCode::INTERNAL_ERROR).
#[diagnostic::on_unimplemented(
    message = "a handler cannot fail with `{Self}`",
    label = "not a `std::error::Error`",
    note = "return `oxmcp::Result<_>`, or a `Result` with another `std::error::Error`"
)]
pub trait IntoError {
    /// Makes the error that is sent to the peer.
    fn into_error(self) -> Error;
}

#[diagnostic::do_not_recommend]
impl<E: StdError + Send + Sync + 'static> IntoError for E {
    fn into_error(self) -> Error {
        let error: Box<dyn StdError + Send + Sync> = Box::new(self);
        match error.downcast::<Error>() {
            Ok(error) => *error,
            Err(error) => Error::internal(with_causes(&*error)).with_source(error),
        }
    }
}

pub(crate) fn with_causes(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        // Many errors repeat their cause in their own text.
        if !text.ends_with(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}
