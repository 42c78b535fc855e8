//! Calls of a single round, whose input the caller gives.

use crate::{
    client::requests::{
        call::Call,
        call_request::CallAnswer,
        results::{decode, read},
    },
    error::Result,
    protocol::{InputRequiredResult, InputResponse, method::MultiRoundTrip},
};

/// The outcome of a call of a single round; see [`Call::manual`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CallOutcome<R> {
    /// The result.
    Complete(R),
    /// None yet: the server asks for input.
    InputRequired(InputRequiredResult),
}

impl<M: MultiRoundTrip> Call<M> {
    /// Makes the call without answering what the server asks: that is left to you. To go on, make the call again, with
    /// [`input_responses`](Self::input_responses) and [`request_state`](Self::request_state). Legacy servers ask in
    /// requests of their own, which the client's handlers answer, so what they give is always complete.
    /// See [MRTR](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr).
    ///
    /// A server asks only for what the client says that it can give: for forms, [`Client::on_elicit`] must be set
    /// although it is not called here.
    ///
    /// ```
    /// use oxmcp::{
    ///     CallOutcome,
    ///     protocol::{ElicitAction, ElicitResult, InputResponse},
    /// };
    /// use serde_json::json;
    ///
    /// # async fn run(session: oxmcp::ClientSession) -> oxmcp::Result<()> {
    /// let mut call = session.call_tool("delete", json!({"project": "teahouse"}));
    /// let result = loop {
    ///     let asked = match call.manual().await? {
    ///         CallOutcome::Complete(result) => break result,
    ///         CallOutcome::InputRequired(asked) => asked,
    ///         _ => unreachable!("there is nothing else"),
    ///     };
    ///     call = session.call_tool("delete", json!({"project": "teahouse"}));
    ///     for (key, _question) in asked.input_requests.iter().flatten() {
    ///         let answer = ElicitResult::new(ElicitAction::Decline);
    ///         call = call.input_responses([(key, InputResponse::new(&answer).expect("it is JSON"))]);
    ///     }
    ///     if let Some(state) = asked.request_state {
    ///         call = call.request_state(state);
    ///     }
    /// };
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// [`Client::on_elicit`]: crate::Client::on_elicit
    ///
    /// # Errors
    /// Those of the call.
    ///
    /// # Cancel safety
    /// As for the call itself.
    pub async fn manual(self) -> Result<CallOutcome<M::Result>> {
        let mut request = self.prepare()?;
        let result = match request.send().await? {
            CallAnswer::Complete(result) | CallAnswer::Extended(result) => result,
            CallAnswer::InputRequired(input) => {
                return decode(M::NAME, &input.result).map(CallOutcome::InputRequired);
            }
        };
        read::<M>(&request.session, result).map(CallOutcome::Complete)
    }

    /// Gives answers to what the server asked when the call was made before, by the keys of what was asked.
    pub fn input_responses<K: Into<String>>(
        mut self,
        answers: impl IntoIterator<Item = (K, InputResponse)>,
    ) -> Self {
        let input = self.round_input.get_or_insert_default();
        let all = input.answers.get_or_insert_default();
        for (key, answer) in answers {
            all.insert(key, answer);
        }
        self
    }

    /// Gives back the state that the server gave when the call was made before.
    pub fn request_state(mut self, state: impl Into<String>) -> Self {
        self.round_input.get_or_insert_default().state = Some(state.into());
        self
    }
}
