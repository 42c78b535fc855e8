//! Handlers that share a state.

use std::marker::PhantomData;

use crate::session::handler::traits::Handler;

/// A handler that is also given what handlers share, as a database: before all else it takes a clone of `state`.
///
/// Where many share one, [`Server::state`](crate::Server::state) gives it to all of them.
///
/// It is the handler that `handler` is without its first argument, and stands wherever a [`Handler`] does: in tools, prompts,
/// resources, resource templates, completers, extensions, and where a client answers. The state is cloned for each call: mostly it is
/// an [`Arc`](std::sync::Arc), or a struct of some.
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
///     let mut notes = notes.0.lock().expect("nobody panics");
///     notes.push(title);
///     notes.len()
/// }
///
/// async fn read(notes: Arc<Notes>, Title { title }: Title) -> Option<String> {
///     let notes = notes.0.lock().expect("nobody panics");
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
/// A method does as well, since its `self` is its first argument: `with_state(notes, Notes::read)`. The arguments of a
/// closure need their types. What takes a plain function and no [`Handler`], as [`Tool::dynamic`](crate::Tool::dynamic) and middleware,
/// captures what it shares.
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

/// The arguments of a [`Handler`] that takes a state first; what follows is up to what it is a handler of.
#[diagnostic::on_unimplemented(
    message = "a handler with state cannot take `{Self}`",
    label = "not `(State)`, `(State, Input)` or `(State, RequestContext, Input)`",
    note = "it is `async fn(State, Input) -> Output` or `async fn(State, RequestContext, Input) -> Output`, in this order"
)]
pub trait StateArguments: 'static {
    /// The first one.
    type State;
    /// The others.
    type Rest: 'static;

    /// Puts them together.
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

/// What can be given to handlers that take a `State` first: such a state, which can be cloned.
#[diagnostic::on_unimplemented(
    message = "a handler that takes `{State}` first cannot be given a clone of `{Self}`",
    label = "cloning it gives no `{State}`",
    note = "a handler with state is `async fn(State, Input) -> Output` or `async fn(State, RequestContext, Input) -> Output`, in this order",
    note = "the state is cloned for each call, on any thread: what cannot be cloned goes into an `Arc`, which the handler takes then",
    note = "a method takes `self: Arc<Self>`, or `self` where that is cloned: what `&self` borrows would not live as long as the call"
)]
pub trait SharedAs<State>: Send + Sync + 'static {
    /// What a call is given.
    #[doc(hidden)]
    fn share(&self) -> State;
}

#[diagnostic::do_not_recommend]
impl<State: Clone + Send + Sync + 'static> SharedAs<State> for State {
    fn share(&self) -> State {
        self.clone()
    }
}

/// No state of any handler. That everything can be given as it, in two forms, makes the compiler look at what a handler takes first
/// before it says that the state is not that: else it tells of two types that differ, without a word on handlers.
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
