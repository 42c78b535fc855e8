//! Scope of a state, in which a server or a client is given handlers that share it.

use crate::{
    debug::opaque_debug,
    session::handler::{
        traits::Handler,
        with_state::{SharedAs, StateArguments, with_state},
    },
};

/// A server or a client while handlers that share a state are added to it: the argument of the function that `Server::state`
/// and `Client::state` take.
///
/// Its methods are those of the [`Server`](crate::Server) or the [`Client`](crate::Client). A hook takes the state as its first
/// argument. A feature is made of the state by a function, which an [attribute](macro@crate::tool) generates, or is given
/// directly, with handlers made by [`with_state`](Self::with_state).
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
    /// A clone of the state.
    #[must_use]
    pub fn state(&self) -> State {
        self.state.clone()
    }

    /// Makes a handler that calls `handler` with a clone of the state as its first argument, as [`with_state`] does.
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

/// A feature that a [`StateScope`] can add: a `Feature` itself, or a function that makes one, of the state or without
/// arguments, as the attributes generate it (`query::tool`).
///
/// You do not need to worry about `Marker`: it distinguishes the three.
#[diagnostic::on_unimplemented(
    message = "`{Self}` makes no `{Feature}` of a state that is a `{State}`",
    label = "neither a `{Feature}` nor a function of `{State}` that returns one",
    note = "give what an attribute makes of a function, as `query::tool`, whose one `#[state]` is a `{State}`",
    note = "by hand the handler gets the state by `s.with_state(handler)`, and is `async fn({State}, Input) -> Output`"
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
