//! The scope in which a server or a client adds handlers that share a state.

use crate::{
    debug::opaque_debug,
    session::handler::{
        traits::Handler,
        with_state::{SharedAs, StateArguments, with_state},
    },
};

/// Adds handlers with a shared state to a server or a client: the argument of the function that `Server::state` and
/// `Client::state` take.
///
/// It has the methods of the [`Server`](crate::Server) or the [`Client`](crate::Client). A hook takes the state as its first
/// argument. Pass a feature as the function that an [attribute](macro@crate::tool) generates, which creates it from the state,
/// or directly, with a handler made by [`with_state`](Self::with_state).
pub struct StateScope<Role, State> {
    role: Role,
    state: State,
}

impl<Role, State> StateScope<Role, State> {
    /// Runs `add` with a scope that has `role`, which is another handle to the server or client that is built.
    pub(crate) fn run(role: Role, state: State, add: impl FnOnce(&Self) -> &Self) {
        add(&Self { role, state });
    }

    pub(crate) fn role(&self) -> &Role {
        &self.role
    }
}

impl<Role, State: Clone + Send + Sync + 'static> StateScope<Role, State> {
    /// Returns a clone of the state.
    #[must_use]
    pub fn state(&self) -> State {
        self.state.clone()
    }

    /// Creates a handler that calls `handler` with a clone of the state as its first argument, like [`with_state`].
    pub fn with_state<Arguments, H>(
        &self,
        handler: H,
    ) -> impl Handler<Arguments::Rest, Returned = H::Returned> + use<Role, State, Arguments, H>
    where
        H: Handler<Arguments>,
        Arguments: StateArguments,
        State: SharedAs<Arguments::State>,
    {
        with_state(self.state.clone(), handler)
    }
}

/// A feature that a [`StateScope`] can add: a `Feature` itself, or a function that returns one, with the state as argument or
/// none, as the attributes generate (`query::tool`).
///
/// You can ignore `Marker`: it distinguishes the three.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a `{Feature}` for the state `{State}`",
    label = "neither a `{Feature}` nor a function from `{State}` to one",
    note = "pass the function that an attribute generates, such as `query::tool`, whose only `#[state]` is a `{State}`",
    note = "without an attribute, pass the state with `s.with_state(handler)`, where `handler` is `async fn({State}, Input) -> Output`"
)]
pub trait OfState<Feature, State, Marker> {
    /// Makes the feature.
    #[doc(hidden)]
    fn of_state(self, state: State) -> Feature;
}

impl<Feature, State> OfState<Feature, State, ()> for Feature {
    fn of_state(self, _state: State) -> Feature {
        self
    }
}

impl<Feature, State, F: FnOnce(State) -> Feature> OfState<Feature, State, (State,)> for F {
    fn of_state(self, state: State) -> Feature {
        self(state)
    }
}

impl<Feature, State, F: FnOnce() -> Feature> OfState<Feature, State, fn()> for F {
    fn of_state(self, _state: State) -> Feature {
        self()
    }
}

opaque_debug!([Role, State] StateScope<Role, State>);
