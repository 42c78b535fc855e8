//! Handlers that share a state.

use std::marker::PhantomData;

use crate::session::handler::traits::Handler;

/// Creates a handler with shared state, such as a database: its first argument is a clone of `state`.
///
/// If many handlers share a state, [`Server::state`](crate::Server::state) passes it to all of them.
///
/// The returned handler takes the arguments of `handler` without the first, and works wherever a [`Handler`] does: in tools,
/// prompts, resources, resource templates, completers, extensions, and for a client's answers. The state is cloned for each
/// call. Usually it is an [`Arc`](std::sync::Arc), or a struct of `Arc`s.
///
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use oxmcp::{JsonSchema, RequestContext, ResourceTemplate, Server, Tool, with_state};
///
/// #[derive(serde::Deserialize, JsonSchema)]
/// struct Title { title: String }
///
/// #[derive(Default)]
/// struct Notes(Mutex<Vec<String>>);
///
/// async fn add(notes: Arc<Notes>, cx: RequestContext, Title { title }: Title) -> usize {
///     cx.progress(1).message("a note").await;
///     let mut notes = notes.0.lock().expect("not poisoned");
///     notes.push(title);
///     notes.len()
/// }
///
/// async fn read(notes: Arc<Notes>, Title { title }: Title) -> Option<String> {
///     let notes = notes.0.lock().expect("not poisoned");
///     notes.contains(&title).then(|| format!("the note {title}"))
/// }
///
/// let notes = Arc::new(Notes::default());
/// let server = Server::new("notes", "1.0.0")
///     .tool(Tool::new("add", "Write a note", with_state(notes.clone(), add)))
///     .resource_template(ResourceTemplate::new("note://{title}", "note", with_state(notes, read)));
/// # let _ = server;
/// ```
///
/// A method works as well, because `self` is its first argument: `with_state(notes, Notes::read)`. The arguments of a closure
/// need type annotations. For functions that take a plain function instead of a [`Handler`], such as
/// [`Tool::dynamic`](crate::Tool::dynamic) and middleware, use closures that capture the state.
pub fn with_state<State, Arguments, H>(
    state: State,
    handler: H,
) -> impl Handler<Arguments::Rest, Returned = H::Returned>
where
    H: Handler<Arguments>,
    Arguments: StateArguments,
    State: SharedAs<Arguments::State>,
{
    WithState {
        state,
        handler,
        arguments: PhantomData,
    }
}

/// The arguments of a [`Handler`] with state: the state, then the arguments of the kind of handler.
#[diagnostic::on_unimplemented(
    message = "a handler with state cannot take `{Self}`",
    label = "not `(State)`, `(State, Input)` or `(State, RequestContext, Input)`",
    note = "it is `async fn(State, Input) -> Output` or `async fn(State, RequestContext, Input) -> Output`, in this order"
)]
pub trait StateArguments: 'static {
    /// The type of the first argument.
    type State;
    /// The types of the other arguments.
    type Rest: 'static;

    /// Joins the state and the other arguments.
    #[doc(hidden)]
    fn join(state: Self::State, rest: Self::Rest) -> Self;
}

impl<S: 'static> StateArguments for (S,) {
    type State = S;
    type Rest = ();

    fn join(state: S, (): ()) -> Self {
        (state,)
    }
}

impl<S: 'static, A: 'static> StateArguments for (S, A) {
    type State = S;
    type Rest = (A,);

    fn join(state: S, (only,): (A,)) -> Self {
        (state, only)
    }
}

impl<S: 'static, A: 'static, B: 'static> StateArguments for (S, A, B) {
    type State = S;
    type Rest = (A, B);

    fn join(state: S, (first, second): (A, B)) -> Self {
        (state, first, second)
    }
}

/// A value that can be passed to handlers that take a `State` first: a state that can be cloned.
#[diagnostic::on_unimplemented(
    message = "the handler's state `{State}` cannot be cloned from `{Self}`",
    label = "cloning it does not give a `{State}`",
    note = "a handler with state is `async fn(State, Input) -> Output` or `async fn(State, RequestContext, Input) -> Output`, in this order",
    note = "the state is cloned for each call, on any thread: if it is not `Clone`, put it into an `Arc`, and let the handler take the `Arc`",
    note = "a method must take `self: Arc<Self>`, or `self` if the type is `Clone`: a borrowed `&self` does not live as long as the call"
)]
pub trait SharedAs<State>: Send + Sync + 'static {
    /// Returns the state for one call.
    #[doc(hidden)]
    fn share(&self) -> State;
}

#[diagnostic::do_not_recommend]
impl<State: Clone + Send + Sync + 'static> SharedAs<State> for State {
    fn share(&self) -> State {
        self.clone()
    }
}

/// A state that no handler takes. Every type implements `SharedAs` for it, in two forms, so that the compiler infers the
/// handler's first argument before it rejects the state. Otherwise it would report two different types, without mentioning
/// handlers.
#[doc(hidden)]
#[expect(unnameable_types, reason = "only implementations mention it")]
#[derive(Debug)]
pub enum NoState<const FORM: bool> {}

#[diagnostic::do_not_recommend]
impl<Any: Send + Sync + 'static> SharedAs<NoState<false>> for Any {
    fn share(&self) -> NoState<false> {
        unreachable!("no handler takes it")
    }
}

#[diagnostic::do_not_recommend]
impl<Any: Send + Sync + 'static> SharedAs<NoState<true>> for Any {
    fn share(&self) -> NoState<true> {
        unreachable!("no handler takes it")
    }
}

struct WithState<State, Arguments, H> {
    state: State,
    handler: H,
    arguments: PhantomData<fn(Arguments)>,
}

impl<State, Arguments, H> Handler<Arguments::Rest> for WithState<State, Arguments, H>
where
    H: Handler<Arguments>,
    Arguments: StateArguments,
    State: SharedAs<Arguments::State>,
{
    type Returned = H::Returned;

    fn call(&self, rest: Arguments::Rest) -> H::Returned {
        self.handler.call(Arguments::join(self.state.share(), rest))
    }
}
