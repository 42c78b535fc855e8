//! Calls that go on by hand.

use serde_json::value::to_raw_value;

use crate::{
    client::requests::call::Call,
    error::{Error, Result},
    json::Text,
    protocol::{
        InputRequiredResult, InputResponse, InputResponses, Revision, method::MultiRoundTrip,
        with_answers,
    },
};

/// What a call gives that goes on by hand; see [`Call::manual`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CallOutcome<R> {
    /// The result.
    Complete(R),
    /// None yet: the server asks for input.
    InputRequired(InputRequiredResult),
}

/// What an earlier call has brought.
#[derive(Debug, Default)]
pub(crate) struct Earlier {
    answers: Option<InputResponses>,
    state: Option<String>,
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
        self.send_once().await
    }

    /// Gives answers to what the server asked when the call was made before, by the keys of what was asked.
    pub fn input_responses<K: Into<String>>(
        mut self,
        answers: impl IntoIterator<Item = (K, InputResponse)>,
    ) -> Self {
        let all = self
            .draft()
            .earlier
            .get_or_insert_default()
            .answers
            .get_or_insert_default();
        for (key, answer) in answers {
            all.insert(key, answer);
        }
        self
    }

    /// Gives back the state that the server gave when the call was made before.
    pub fn request_state(mut self, state: impl Into<String>) -> Self {
        self.draft().earlier.get_or_insert_default().state = Some(state.into());
        self
    }
}

impl Earlier {
    /// The params of a call that goes on.
    pub(crate) fn add_to(&self, params: &[u8], revision: Revision) -> Result<Vec<u8>> {
        if !revision.has_input_responses() {
            return Err(Error::unsupported(format!(
                "the server speaks revision {revision}, in which calls do not go on; nothing was sent"
            )));
        }
        let text = str::from_utf8(params).map_err(|_| Error::misuse("the params are no text"))?;
        let add = || {
            let state = self.state.as_ref().map(to_raw_value).transpose()?;
            with_answers(Text::checked(text), self.answers.as_ref(), state.as_deref())
        };
        add().map_err(|error: serde_json::Error| {
            Error::misuse(format!("the answers cannot be JSON: {error}")).with_source(error)
        })
    }
}
