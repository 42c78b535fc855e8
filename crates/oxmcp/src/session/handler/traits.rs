//! The traits of handlers: async functions with a context and an input, and their errors.

use std::{error::Error as StdError, future::Future, sync::Arc};

use crate::{error::Error, session::connection::RequestContext};

/// An async function that can be the handler of a tool, a prompt or a resource, or that answers what servers ask.
///
/// It is implemented for functions and closures of
/// - `(Input)`,
/// - `(RequestContext, Input)`,
/// - `(RequestContext)` and `()`, where there is no input,
///
/// that return a [`HandlerFuture`]. What the input may be and what may be returned is up to what it is a handler of.
/// You do not need to worry about `Arguments`: they are those of the function.
///
/// What handlers share, as a database, comes before these, and is given by [`with_state`](crate::session::with_state). A closure can capture
/// it as well; one handler serves all requests, so it clones it for each.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no handler",
    label = "not an async function of `(Input)` or `(RequestContext, Input)`",
    note = "a handler is `async fn(Input) -> Output` or `async fn(RequestContext, Input) -> Output`; put all that there is to say into one `Input`",
    note = "it is shared by all requests: a closure must be `Fn + Send + Sync + 'static`, so clone what it needs into the future"
)]
pub trait Handler<Arguments>: Send + Sync + 'static {
    /// What calling the function gives: a future, where it is async.
    type Returned;

    /// Calls the function.
    #[doc(hidden)]
    fn call(&self, arguments: Arguments) -> Self::Returned;
}

// These ask for nothing but the number of arguments, so that the compiler knows at once which one is meant, and then says
// what exactly is wrong with it.

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

// With what handlers share before the others; nothing takes it as it is.
impl<F: Fn(A, B, C) -> R + Send + Sync + 'static, A, B, C, R> Handler<(A, B, C)> for F {
    type Returned = R;

    fn call(&self, (first, second, third): (A, B, C)) -> R {
        self(first, second, third)
    }
}

/// What a handler may take before its input: a [`RequestContext`].
#[diagnostic::on_unimplemented(
    message = "the first of a handler's two arguments must be `RequestContext`, not `{Self}`",
    label = "not a `RequestContext`",
    note = "a handler is `async fn(Input) -> Output` or `async fn(RequestContext, Input) -> Output`, in this order",
    note = "`Input` is one type, for all that there is to say: `#[derive(serde::Deserialize, oxmcp::JsonSchema)]`",
    note = "what handlers share comes before these, and is given by `Server::state(shared, |s| …)` as `s.with_state(handler)`, or by `oxmcp::with_state(shared, handler)`"
)]
pub trait HandlerContext: Sized + 'static {
    /// Makes it of what there is.
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

/// What an async function returns when it is called: any future.
#[diagnostic::on_unimplemented(
    message = "a handler must be async, and this one returns `{Self}`",
    label = "not an async function",
    note = "write `async fn`, or a closure whose body is `async move {{ … }}`"
)]
pub trait HandlerFuture {
    /// What the function returns in the end.
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

/// An error of a handler that is none of a tool: an [`Error`], which the peer gets as it is, or any other
/// [`std::error::Error`], whose text the peer gets with the code
/// [`INTERNAL_ERROR`](crate::ErrorCode::INTERNAL_ERROR).
#[diagnostic::on_unimplemented(
    message = "a handler cannot fail with `{Self}`",
    label = "not a `std::error::Error`",
    note = "return `oxmcp::Result<_>`, or a `Result` with another `std::error::Error`"
)]
pub trait IntoError {
    /// Makes the error that the peer gets.
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
