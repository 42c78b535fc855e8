//! Completer of an argument: a fixed list or a function.

use std::{fmt, future::ready, sync::Arc};

use oxmcp_protocol::{CompleteResult, Completion};

use super::{CompleterArguments, CompletionInput, IntoCompletion};
use crate::{
    error::Result,
    session::{
        connection::RequestContext,
        handler::traits::{Handler, HandlerFuture},
        inbound::{body::Body, inline_execution::InlineExecution, run::Work},
        task::BoxFuture,
    },
};

/// A completer of an argument while it is typed: a fixed list, or a function.
///
/// You rarely need this type, since methods that take a completer also take a list or a function.
/// See [completion](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion).
///
/// ```
/// use oxmcp::{Completer, CompletionInput};
///
/// // The client gets the values of a list that begin with the typed text.
/// let colors = Completer::new(["red", "green", "blue"]);
///
/// // The values that a function returns are not filtered.
/// let files = Completer::new(|completing: CompletionInput| async move {
///     vec![format!("{}.txt", completing.value)]
/// });
/// # let _ = (colors, files);
/// ```
#[derive(Clone)]
pub struct Completer(Kind);

#[derive(Clone)]
enum Kind {
    List(Arc<[String]>),
    Function(Arc<Function>),
}

struct Function {
    run:
        Box<dyn Fn(RequestContext, CompletionInput) -> BoxFuture<Result<Completion>> + Send + Sync>,
    inline: Arc<InlineExecution>,
}

impl Completer {
    /// Creates a completer from a list of strings, or from an async function of a [`CompletionInput`].
    pub fn new<Marker>(completer: impl IntoCompleter<Marker>) -> Self {
        completer.into_completer()
    }

    fn of_list(values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self(Kind::List(values.into_iter().map(Into::into).collect()))
    }

    fn of_function<Arguments, H>(handler: H) -> Self
    where
        Arguments: CompleterArguments,
        H: Handler<Arguments>,
        H::Returned: HandlerFuture<Output: IntoCompletion> + Send + 'static,
    {
        let run = move |context, completing| -> BoxFuture<Result<Completion>> {
            let running = handler.call(Arguments::of(context, completing)).run();
            Box::pin(async move { running.await.into_completion() })
        };
        Self(Kind::Function(Arc::new(Function {
            run: Box::new(run),
            inline: Arc::new(InlineExecution::new()),
        })))
    }

    pub(crate) fn complete(&self, context: RequestContext, completing: CompletionInput) -> Work {
        let (future, inline): (BoxFuture<Result<Completion>>, _) = match &self.0 {
            Kind::List(values) => {
                let completion = completing.matching(values.iter().map(String::as_str));
                (Box::pin(ready(Ok(completion))), None)
            }
            Kind::Function(function) => {
                let inline = Some(Arc::clone(&function.inline));
                let function = Arc::clone(function);
                let future = async move { (function.run)(context, completing).await };
                (Box::pin(future), inline)
            }
        };
        let future = Box::pin(async { Ok(Body::of(CompleteResult::from(future.await?))) });
        Work { future, inline }
    }
}

impl fmt::Debug for Completer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::List(values) => f.debug_list().entries(values.iter()).finish(),
            Kind::Function(_) => f.write_str("Completer(..)"),
        }
    }
}

/// A type that converts to a [`Completer`]: a list of strings, or an async function of [`CompletionInput`] or of [`RequestContext`]
/// and [`CompletionInput`]. [`IntoCompletion`] lists the return types of the function.
///
/// Ignore `Marker`: it distinguishes lists from functions.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot complete an argument",
    label = "neither a list of strings nor an async function of `(CompletionInput)`",
    note = "give a list, `[\"red\", \"green\"]`, or an `async fn(CompletionInput) -> Vec<String>`",
    note = "all requests share the function: a closure must be `Fn + Send + Sync + 'static`, so clone captured values into the future"
)]
pub trait IntoCompleter<Marker> {
    /// Makes the completer.
    #[doc(hidden)]
    fn into_completer(self) -> Completer;
}

impl IntoCompleter<Self> for Completer {
    fn into_completer(self) -> Completer {
        self
    }
}

impl<S: Into<String>> IntoCompleter<String> for Vec<S> {
    fn into_completer(self) -> Completer {
        Completer::of_list(self)
    }
}

impl<S: Into<String>, const N: usize> IntoCompleter<String> for [S; N] {
    fn into_completer(self) -> Completer {
        Completer::of_list(self)
    }
}

impl<S: Into<String> + Clone> IntoCompleter<String> for &[S] {
    fn into_completer(self) -> Completer {
        Completer::of_list(self.iter().cloned())
    }
}

impl<H, A> IntoCompleter<(A,)> for H
where
    (A,): CompleterArguments,
    H: Handler<(A,)>,
    H::Returned: HandlerFuture<Output: IntoCompletion> + Send + 'static,
{
    fn into_completer(self) -> Completer {
        Completer::of_function(self)
    }
}

impl<H, A, B> IntoCompleter<(A, B)> for H
where
    (A, B): CompleterArguments,
    H: Handler<(A, B)>,
    H::Returned: HandlerFuture<Output: IntoCompletion> + Send + 'static,
{
    fn into_completer(self) -> Completer {
        Completer::of_function(self)
    }
}
