//! Handlers of a client that share a state.

use std::future::Future;

use oxmcp_protocol::{
    CreateMessageParams, ElicitFormParams, ElicitUrlParams, LoggingMessageParams,
};

use crate::{
    client::{
        client::Client,
        handlers::{
            arguments::AnswerArguments, elicitation::IntoElicitResult,
            sampling::IntoCreateMessageResult,
        },
        session::ClientSession,
    },
    session::handler::{
        state_scope::StateScope,
        traits::{Handler, HandlerFuture},
        with_state::{SharedAs, StateArguments},
    },
};

impl Client {
    /// Adds handlers that take shared state as their first argument, such as the settings of the user. Each call gets a clone
    /// of the state: usually it is an [`Arc`](std::sync::Arc), or a struct of several.
    ///
    /// ```
    /// use std::sync::{Arc, atomic::{AtomicUsize, Ordering}};
    ///
    /// use oxmcp::{Client, protocol::{ElicitAction, ElicitFormParams}};
    ///
    /// #[derive(Default)]
    /// struct App { messages: AtomicUsize, questions: AtomicUsize }
    ///
    /// async fn answer(app: Arc<App>, _form: ElicitFormParams) -> ElicitAction {
    ///     app.questions.fetch_add(1, Ordering::Relaxed);
    ///     ElicitAction::Decline
    /// }
    ///
    /// let client = Client::new("my-app", "1.0.0").state(Arc::new(App::default()), |s| {
    ///     s.on_elicit(answer).on_log(|app, _message, _session| async move {
    ///         app.messages.fetch_add(1, Ordering::Relaxed);
    ///     })
    /// });
    /// # let _ = client;
    /// ```
    #[must_use]
    pub fn state<State: Clone + Send + Sync + 'static>(
        self,
        state: State,
        add: impl FnOnce(&StateScope<Self, State>) -> &StateScope<Self, State>,
    ) -> Self {
        StateScope::run(self.clone(), state, add);
        self
    }
}

impl<State: Clone + Send + Sync + 'static> StateScope<Client, State> {
    /// Sets the handler of [`Client::on_elicit`], which takes the state first.
    pub fn on_elicit<Arguments, H>(&self, handler: H) -> &Self
    where
        Arguments: StateArguments<Rest: AnswerArguments<ElicitFormParams>>,
        H: Handler<Arguments>,
        H::Returned: HandlerFuture<Output: IntoElicitResult> + Send + 'static,
        State: SharedAs<Arguments::State>,
    {
        let handler = self.with_state(handler);
        self.build(|client| client.on_elicit(handler))
    }

    /// Sets the handler of [`Client::on_elicit_url`], which takes the state first.
    pub fn on_elicit_url<Arguments, H>(&self, handler: H) -> &Self
    where
        Arguments: StateArguments<Rest: AnswerArguments<ElicitUrlParams>>,
        H: Handler<Arguments>,
        H::Returned: HandlerFuture<Output: IntoElicitResult> + Send + 'static,
        State: SharedAs<Arguments::State>,
    {
        let handler = self.with_state(handler);
        self.build(|client| client.on_elicit_url(handler))
    }

    /// Sets the handler of [`Client::on_sample`], which takes the state first.
    pub fn on_sample<Arguments, H>(&self, handler: H) -> &Self
    where
        Arguments: StateArguments<Rest: AnswerArguments<CreateMessageParams>>,
        H: Handler<Arguments>,
        H::Returned: HandlerFuture<Output: IntoCreateMessageResult> + Send + 'static,
        State: SharedAs<Arguments::State>,
    {
        let handler = self.with_state(handler);
        self.build(|client| client.on_sample(handler))
    }

    /// Sets the handler of [`Client::on_tools_changed`], which takes the state first.
    pub fn on_tools_changed<F, Fut>(&self, handler: F) -> &Self
    where
        F: Fn(State, ClientSession) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let state = self.state();
        self.build(|client| client.on_tools_changed(move |session| handler(state.clone(), session)))
    }

    /// Sets the handler of [`Client::on_prompts_changed`], which takes the state first.
    pub fn on_prompts_changed<F, Fut>(&self, handler: F) -> &Self
    where
        F: Fn(State, ClientSession) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let state = self.state();
        self.build(|client| {
            client.on_prompts_changed(move |session| handler(state.clone(), session))
        })
    }

    /// Sets the handler of [`Client::on_resources_changed`], which takes the state first.
    pub fn on_resources_changed<F, Fut>(&self, handler: F) -> &Self
    where
        F: Fn(State, ClientSession) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let state = self.state();
        self.build(|client| {
            client.on_resources_changed(move |session| handler(state.clone(), session))
        })
    }

    /// Sets the handler of [`Client::on_resource_updated`], which takes the state first.
    pub fn on_resource_updated<F, Fut>(&self, handler: F) -> &Self
    where
        F: Fn(State, String, ClientSession) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let state = self.state();
        self.build(|client| {
            client.on_resource_updated(move |it, session| handler(state.clone(), it, session))
        })
    }

    /// Sets the handler of [`Client::on_log`], which takes the state first.
    pub fn on_log<F, Fut>(&self, handler: F) -> &Self
    where
        F: Fn(State, LoggingMessageParams, ClientSession) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let state = self.state();
        self.build(|client| client.on_log(move |it, session| handler(state.clone(), it, session)))
    }

    /// Sets the handler of [`Client::on_elicitation_complete`], which takes the state first.
    pub fn on_elicitation_complete<F, Fut>(&self, handler: F) -> &Self
    where
        F: Fn(State, String, ClientSession) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let state = self.state();
        self.build(|client| {
            client.on_elicitation_complete(move |it, session| handler(state.clone(), it, session))
        })
    }

    /// Runs a builder method of the client.
    fn build(&self, build: impl FnOnce(Client) -> Client) -> &Self {
        drop(build(self.role().clone()));
        self
    }
}
