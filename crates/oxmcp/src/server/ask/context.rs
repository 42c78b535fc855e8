//! What a handler asks.

use std::task::Poll;

use futures_util::future::try_join_all;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{
    Asked, Question, Questions, answer, capability, live,
    memory::{Found, Memory, Mode},
    question::{Answered, Put},
    state::Digest,
};
use crate::{
    Error, Result,
    protocol::{
        CreateMessageParams, CreateMessageResult, ElicitFormParams, InputRequest, InputResponses,
        Project, Root,
    },
    schema::JsonSchema,
    session::RequestContext,
};

impl RequestContext {
    /// Asks the user to fill in a form, and waits for the answer.
    ///
    /// The fields of the form are those of `T`: text, numbers, `bool`, enums of plain names, and lists of such enums; an
    /// `Option` need not be filled in. Doc comments tell the user what is meant. A struct without fields is a question to say
    /// yes or no to. Forms are not for secrets: see [`ask_url`](Self::ask_url).
    ///
    /// This works in every revision that has elicitation, from handlers of tools, prompts and resources. In the first
    /// ones, the client is sent a request, and the handler waits. From 2026-07-28 on, the call is answered with
    /// the question: the error that this gives then ([`Error::is_input_required`]) is to be handed on, by `?`, and the
    /// handler runs again, from its beginning, when the answer is there. So ask before you change anything, do in a
    /// [`step`](Self::step) what must not be done twice, and give each question a key of its own, the same each time. A
    /// question whose text or form is not the same as in the round before is asked again.
    ///
    /// See [elicitation](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation) and
    /// [MRTR](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr).
    ///
    /// ```
    /// use oxmcp::{JsonSchema, RequestContext, Tool, ToolError};
    ///
    /// #[derive(serde::Deserialize, JsonSchema)]
    /// struct Confirm {
    ///     /// Keep a copy for 30 days
    ///     keep_a_copy: bool,
    /// }
    ///
    /// async fn delete(cx: RequestContext) -> Result<&'static str, ToolError> {
    ///     let confirm: Confirm = cx.ask("confirm", "Delete the project?").await?;
    ///     Ok(if confirm.keep_a_copy { "deleted, with a copy" } else { "deleted for good" })
    /// }
    /// # let _ = Tool::new("delete", "Delete the project", delete);
    /// ```
    ///
    /// # Errors
    /// [`Error::is_declined`] where the user does not agree; in a tool, `?` makes of it a text that the model can act on.
    /// [`Error::is_unsupported`] where the client cannot ask, before anything is sent; [`Error::is_timeout`] after
    /// [`Server::ask_timeout`](crate::Server::ask_timeout); [`Error::is_input_required`] where the answer will come with the
    /// next round. Besides, where the answer does not fit the form, and where `T` is nothing that a form can ask for.
    ///
    /// # Cancel safety
    /// When the future is dropped, the question is cancelled on the wire, or not asked at all.
    pub async fn ask<T>(&self, key: impl Into<String>, message: impl Into<String>) -> Result<T>
    where
        T: DeserializeOwned + JsonSchema + 'static,
    {
        self.ask_all(Question::form(key, message)).await
    }

    /// The same, to which declining is an answer like any other.
    ///
    /// # Errors
    /// Those of [`ask`](Self::ask), except that the user does not agree.
    ///
    /// # Cancel safety
    /// As for [`ask`](Self::ask).
    pub async fn ask_or_declined<T>(
        &self,
        key: impl Into<String>,
        message: impl Into<String>,
    ) -> Result<Asked<T>>
    where
        T: DeserializeOwned + JsonSchema + 'static,
    {
        self.ask_all(Question::form::<T>(key, message).or_declined())
            .await
    }

    /// Asks the user to fill in a form that was written by hand. The answer is JSON that fits it.
    ///
    /// # Errors
    /// Those of [`ask`](Self::ask).
    ///
    /// # Cancel safety
    /// As for [`ask`](Self::ask).
    pub async fn ask_form(
        &self,
        key: impl Into<String>,
        params: ElicitFormParams,
    ) -> Result<Box<RawValue>> {
        self.ask_all(Question::form_of(key, params)).await
    }

    /// Asks the user to visit a URL (2025-11-25 and later), for what must not pass through the client: secrets, payments,
    /// logging in elsewhere.
    ///
    /// That the user agreed does not say what came of it. That is for you to find out: the page that the user visits is
    /// yours, and it must make sure that it is the same user. A URL with something random in it is made in a
    /// [`step`](Self::step), so that it is the same when the handler runs again.
    ///
    /// In 2025-11-25 the elicitation has an id, by which
    /// [`notify_elicitation_complete`](crate::ServerSession::notify_elicitation_complete) tells the client that the user is
    /// done; [`Question::url_of`] asks with an id of yours.
    /// See [URL mode](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#url-mode-elicitation-requests).
    ///
    /// # Errors
    /// Those of [`ask`](Self::ask).
    ///
    /// # Cancel safety
    /// As for [`ask`](Self::ask).
    pub async fn ask_url(
        &self,
        key: impl Into<String>,
        message: impl Into<String>,
        url: impl Into<String>,
    ) -> Result<()> {
        self.ask_all(Question::url(key, message, url)).await
    }

    /// Asks a model of the client.
    /// See [sampling](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling), which is deprecated from
    /// 2026-07-28 on.
    ///
    /// # Errors
    /// Those of [`ask`](Self::ask), and what the client answers as an error.
    ///
    /// # Cancel safety
    /// As for [`ask`](Self::ask).
    pub async fn sample(
        &self,
        key: impl Into<String>,
        params: CreateMessageParams,
    ) -> Result<CreateMessageResult> {
        self.ask_all(Question::sample(key, params)).await
    }

    /// Asks for the client's roots.
    /// See [roots](https://modelcontextprotocol.io/specification/2026-07-28/client/roots), which are deprecated from
    /// 2026-07-28 on.
    ///
    /// # Errors
    /// Those of [`ask`](Self::ask), and what the client answers as an error.
    ///
    /// # Cancel safety
    /// As for [`ask`](Self::ask).
    pub async fn roots(&self) -> Result<Vec<Root>> {
        self.ask_all(Question::roots()).await
    }

    /// Asks several questions in one round: a tuple of up to eight, or a `Vec`. What is asked at once by
    /// `tokio::join!` or `tokio::try_join!` goes into one round, too.
    ///
    /// ```
    /// use oxmcp::{JsonSchema, Question, RequestContext};
    ///
    /// #[derive(serde::Deserialize, JsonSchema)]
    /// struct Name { name: String }
    ///
    /// async fn greet(cx: RequestContext) -> oxmcp::Result<String> {
    ///     let questions = (Question::form::<Name>("name", "Who are you?"), Question::roots());
    ///     let (Name { name }, roots) = cx.ask_all(questions).await?;
    ///     Ok(format!("{name} works in {} places", roots.len()))
    /// }
    /// # let _ = oxmcp::Tool::new("greet", "Greet the user", greet);
    /// ```
    ///
    /// # Errors
    /// Those of [`ask`](Self::ask), of the first question that has one.
    ///
    /// # Cancel safety
    /// As for [`ask`](Self::ask).
    pub async fn ask_all<Q: Questions>(&self, questions: Q) -> Result<Q::Answers> {
        let mut put = Vec::new();
        let read = questions.put(&mut put);
        let answered = Box::pin(ask(self, put)).await?;
        read(&mut answered.iter())
    }

    /// The answers that came with this request (2026-07-28 and later), for handlers that return
    /// [`Reply`](crate::Reply)s. On older sessions they are those to what the handler asked the time before.
    #[must_use]
    pub fn input_responses(&self) -> InputResponses {
        Memory::find(self).map_or_else(InputResponses::new, |memory| memory.responses())
    }

    /// The state that came with this request, as it is, for handlers that return [`Reply`](crate::Reply)s. A client can send
    /// anything there: what matters must be protected, and checked.
    /// See [server requirements](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr#server-requirements-basic-workflow).
    #[must_use]
    pub fn request_state(&self) -> Option<String> {
        Memory::find(self)?.with_mode(|mode| match mode {
            Mode::ByHand(state) => state.clone(),
            Mode::Live | Mode::Rounds(_) => None,
        })
    }
}

/// A question that is ready to be put.
struct Ready {
    key: String,
    request: InputRequest,
    digest: Digest,
}

async fn ask(cx: &RequestContext, put: Vec<Put>) -> Result<Vec<Answered>> {
    let ready = put
        .into_iter()
        .map(|put| ready(cx, put))
        .collect::<Result<Vec<_>>>()?;
    let memory = can_ask(cx)?;
    let revision = cx.revision();
    let mut answers = Vec::with_capacity(ready.len());
    for question in &ready {
        answers.push(find(&memory, question, cx)?);
    }
    if revision.is_modern() {
        let missing = ready.iter().zip(&answers).filter(|(_, it)| it.is_none());
        let mut is_missing = false;
        for (question, _) in missing {
            memory.suspend(&question.key, question.request.clone());
            is_missing = true;
        }
        if is_missing {
            others_first().await;
            return Err(Error::suspended());
        }
    }
    let server = cx.server_session().ok_or_else(no_server)?.server();
    let settings = server.features().ask.clone();
    let waits = ready
        .into_iter()
        .zip(answers)
        .map(async |(question, known)| {
            let value = match known {
                Some(value) => value,
                None => {
                    let value = live::ask(cx, &settings, &question.key, &question.request).await?;
                    memory.learn(&question.key, &question.digest, &value);
                    value
                }
            };
            Ok(Answered {
                key: question.key,
                request: question.request,
                value,
                revision,
            })
        });
    try_join_all(waits).await
}

fn ready(cx: &RequestContext, put: Put) -> Result<Ready> {
    let Put { key, request } = put;
    let request = request?;
    capability::check(&request, cx.client_capabilities(), cx.revision())?;
    // What the client does not get to see makes no other question of it.
    let mut shown = request.clone();
    shown.project(cx.revision());
    let digest = Digest::of(&shown).map_err(|error| {
        Error::misuse(format!("the question {key:?} is no JSON: {error}")).with_source(error)
    })?;
    Ok(Ready {
        key,
        request,
        digest,
    })
}

/// The answer, where it is known.
fn find(memory: &Memory, question: &Ready, cx: &RequestContext) -> Result<Option<Box<RawValue>>> {
    match memory.look(&question.key, &question.digest)? {
        Found::Known(value) => Ok(Some(value)),
        Found::Nowhere => Ok(None),
        Found::Came(response) => {
            let revision = cx.revision();
            let value = answer::check(Some(&question.key), &question.request, &response, revision)?;
            memory.learn(&question.key, &question.digest, &value);
            Ok(Some(value))
        }
    }
}

/// Refuses to ask where no answer can come.
fn can_ask(cx: &RequestContext) -> Result<std::sync::Arc<Memory>> {
    let parts = cx.parts();
    if cx.server_session().is_none() {
        return Err(no_server());
    }
    if parts.id.is_none() {
        return Err(Error::misuse(
            "a notification has no answer, so nothing can be asked while it is handled",
        ));
    }
    if parts.batch.is_some() {
        return Err(Error::unsupported(
            "the client sent this request in a batch, and waits for all its answers at once: nothing can be asked meanwhile",
        ));
    }
    let memory = Memory::of(parts);
    let modern = cx.revision().is_modern();
    memory.with_mode(|mode| match mode {
        Mode::ByHand(_) => Err(Error::misuse(
            "a handler that returns a Reply asks by returning Reply::InputRequired, and not in between",
        )),
        Mode::Live if modern => Err(Error::misuse(
            "only handlers of tools, prompts and resources can ask, and only with the context that they were given",
        )),
        Mode::Live | Mode::Rounds(_) => Ok(()),
    })?;
    Ok(memory)
}

fn no_server() -> Error {
    Error::misuse("a client is asked by handlers of servers only")
}

/// Lets what runs beside this in the same task ask as well, before the handler ends.
async fn others_first() {
    let mut polled = false;
    std::future::poll_fn(|cx| {
        if polled {
            return Poll::Ready(());
        }
        polled = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
