//! Methods of [`RequestContext`] for asking questions and running steps.

use std::{
    future::{Future, poll_fn},
    sync::Arc,
    task::Poll,
};

use oxmcp_protocol::{
    CreateMessageParams, CreateMessageResult, ElicitFormParams, InputRequest, InputResponses,
    Revision, Root, internal::Project,
};
use oxmcp_schema::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::{RawValue, to_raw_value};

use super::{
    Question, Questions, UserDecision, check, detach, live_session,
    question::{Answered, Put},
    rounds,
};
use crate::{
    error::{Error, Result},
    session::{
        connection::RequestContext,
        handler::journal::{AnswerLookup, Journal, QuestionDigest, QuestionMode},
        task::try_join_boxed,
    },
};

impl RequestContext {
    /// Asks the user to fill in a form, and waits for the answer.
    ///
    /// The fields of the form are those of `T`: text, numbers, `bool`, enums of plain names, and lists of such enums; an
    /// `Option` may stay empty. Doc comments become the descriptions that the user sees. A struct without fields is a yes-or-no
    /// question. Forms are not for secrets: see [`ask_url`](Self::ask_url).
    ///
    /// This works in every revision that has elicitation, from handlers of tools, prompts and resources. Up to 2025-11-25, the
    /// server sends a request to the client, and the handler waits. From 2026-07-28 on, the question is the response to the
    /// call: this function returns an error ([`Error::is_input_required`]) that the handler must pass on with `?`, and the
    /// handler runs again from its beginning when the client sends the answer. So:
    ///
    /// - Ask before you change anything.
    /// - Put work that must not be done twice into a [`step`](Self::step).
    /// - Give each question a unique key, and use the same key in every round. If the text or the form of a question changes
    ///   between rounds, the user is asked again.
    ///
    /// A client can send the same answer twice. The state that the client keeps is sealed, but the server does not record that
    /// it was used: within [`Server::state_lifetime`](crate::Server::state_lifetime), a client can repeat a round, by mistake or
    /// on purpose, and the code after the question runs again. Guard an action that must happen once, such as a payment, with
    /// an idempotency key: create the key in a [`step`](Self::step), so that it is the same in every round, and let your
    /// database accept it once.
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
    /// [`Error::is_declined`] if the user does not agree; in a tool, `?` turns the error into a text that the model can act on.
    /// [`Error::is_unsupported`] if the client does not support such questions; nothing is sent then. [`Error::is_timeout`]
    /// after [`Server::ask_timeout`](crate::Server::ask_timeout). [`Error::is_input_required`] if the answer comes with the
    /// next round. Also if the answer does not match the form, or `T` cannot be a form.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the question on the wire if it was sent.
    #[doc(alias("elicit", "elicitation/create"))]
    pub async fn ask<T>(&self, key: impl Into<String>, message: impl Into<String>) -> Result<T>
    where
        T: DeserializeOwned + JsonSchema + 'static,
    {
        self.ask_all(Question::form(key, message)).await
    }

    /// Like [`ask`](Self::ask), but returns a refusal by the user as an answer instead of an error.
    ///
    /// # Errors
    /// Those of [`ask`](Self::ask), except [`Error::is_declined`].
    ///
    /// # Cancel safety
    /// As for [`ask`](Self::ask).
    pub async fn ask_or_declined<T>(
        &self,
        key: impl Into<String>,
        message: impl Into<String>,
    ) -> Result<UserDecision<T>>
    where
        T: DeserializeOwned + JsonSchema + 'static,
    {
        self.ask_all(Question::form::<T>(key, message).or_declined())
            .await
    }

    /// Asks the user to fill in a hand-written form. The answer is JSON that matches it.
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
        self.ask_all(Question::form_with(key, params)).await
    }

    /// Asks the user to visit a URL (2025-11-25 and later), for data that must not pass through the client: secrets, payments,
    /// logins to other services.
    ///
    /// The answer is the user's consent, and not the outcome of the visit. The page belongs to your server, which learns the
    /// outcome there, and must verify that the visitor is the same user. If the URL has random parts, create it in a
    /// [`step`](Self::step), so that it is the same when the handler runs again.
    ///
    /// In 2025-11-25 the elicitation has an id, with which
    /// [`notify_elicitation_complete`](crate::ServerSession::notify_elicitation_complete) tells the client that the user is
    /// done. To choose the id, use [`Question::url_with`].
    /// See [URL mode](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#url-mode-elicitation-requests).
    ///
    /// # Errors
    /// Those of [`ask`](Self::ask).
    ///
    /// # Cancel safety
    /// As for [`ask`](Self::ask).
    #[doc(alias("elicitation/create", "elicit"))]
    pub async fn ask_url(
        &self,
        key: impl Into<String>,
        message: impl Into<String>,
        url: impl Into<String>,
    ) -> Result<()> {
        self.ask_all(Question::url(key, message, url)).await
    }

    /// Asks the client to generate a message with a model.
    /// See [sampling](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling), which is deprecated from
    /// 2026-07-28 on.
    ///
    /// # Errors
    /// Those of [`ask`](Self::ask), and errors returned by the client.
    ///
    /// # Cancel safety
    /// As for [`ask`](Self::ask).
    #[doc(alias("create_message", "sampling/createMessage"))]
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
    /// Those of [`ask`](Self::ask), and errors returned by the client.
    ///
    /// # Cancel safety
    /// As for [`ask`](Self::ask).
    #[doc(alias("list_roots", "roots/list"))]
    pub async fn roots(&self) -> Result<Vec<Root>> {
        self.ask_all(Question::roots()).await
    }

    /// Asks one question of any kind.
    ///
    /// ```
    /// use oxmcp::{UserDecision, JsonSchema, Question, RequestContext};
    ///
    /// #[derive(serde::Deserialize, JsonSchema)]
    /// struct Confirm { backup: bool }
    ///
    /// async fn delete(cx: RequestContext) -> oxmcp::Result<String> {
    ///     let question = Question::form::<Confirm>("confirm", "Delete the project?").or_declined();
    ///     Ok(match cx.put(question).await? {
    ///         UserDecision::Accepted(Confirm { backup }) => format!("deleted, backup: {backup}"),
    ///         not_agreed => format!("the user {not_agreed}"),
    ///     })
    /// }
    /// # let _ = oxmcp::Tool::new("delete", "Delete the project", delete);
    /// ```
    ///
    /// # Errors
    /// Those of [`ask`](Self::ask).
    ///
    /// # Cancel safety
    /// As for [`ask`](Self::ask).
    #[doc(alias = "elicit")]
    pub async fn put<T: 'static>(&self, question: Question<T>) -> Result<T> {
        self.ask_all(question).await
    }

    /// Asks several questions in one round: a tuple of up to eight, or a `Vec`. Questions that run concurrently in
    /// `tokio::join!` or `tokio::try_join!` also share a round.
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
    /// Those of [`ask`](Self::ask), for the first question that fails.
    ///
    /// # Cancel safety
    /// As for [`ask`](Self::ask).
    pub async fn ask_all<Q: Questions>(&self, questions: Q) -> Result<Q::Answers> {
        let mut put = Vec::new();
        let read = questions.put(&mut put);
        let answered = Box::pin(ask(self, put)).await?;
        read(&mut answered.iter())
    }

    /// Runs a function once per call, even if the handler runs several times: later runs get the result stored under the key.
    ///
    /// A handler that asks runs again from its beginning when the answer arrives (2026-07-28 and later). It repeats everything
    /// it did before the question, except for steps. The client keeps the stored result, sealed, so it should be small: see
    /// [`Limits::max_request_state`](crate::Limits::max_request_state). The server keeps nothing after the response: if the
    /// client never sends the answers, the rest of the handler never runs. A step is not a lock: a client can send the same
    /// answers twice, and then the code after the last question runs twice.
    ///
    /// In a [task](crate::tasks) the start of a step and its result are stored, so that another process can resume the task.
    /// A step that started but did not finish then fails the task, unless the step is [idempotent](Self::step_idempotent).
    ///
    /// ```
    /// use oxmcp::{JsonSchema, RequestContext, ToolError};
    ///
    /// #[derive(serde::Deserialize, JsonSchema)]
    /// struct Confirm {}
    ///
    /// # async fn count_files() -> usize { 3 }
    /// async fn delete(cx: RequestContext) -> Result<String, ToolError> {
    ///     let files = cx.step("count", count_files).await?;
    ///     let Confirm {} = cx.ask("confirm", format!("Delete {files} files?")).await?;
    ///     Ok(format!("deleted {files} files"))
    /// }
    /// # let _ = oxmcp::Tool::new("delete", "Delete all files", delete);
    /// ```
    ///
    /// # Errors
    /// If the result cannot be converted to JSON or back, or if an earlier question is still unanswered; in that case the
    /// function is not called.
    ///
    /// # Cancel safety
    /// When the future is dropped, the function's future is dropped, and no result is stored.
    pub async fn step<T, F, Fut>(&self, key: impl Into<String>, f: F) -> Result<T>
    where
        T: Serialize + DeserializeOwned,
        F: FnOnce() -> Fut,
        Fut: Future<Output = T>,
    {
        self.try_step(key, || async { Ok(f().await) }).await
    }

    /// Like [`step`](Self::step), for a function that can fail. An error is not stored.
    ///
    /// ```
    /// # use oxmcp::{RequestContext, ToolError};
    /// async fn count(cx: RequestContext) -> Result<u64, ToolError> {
    ///     cx.try_step("count", || async { Ok("7".parse()?) }).await
    /// }
    /// # let _ = oxmcp::Tool::new("count", "Count", count);
    /// ```
    ///
    /// # Errors
    /// Those of [`step`](Self::step), and those of the function.
    ///
    /// # Cancel safety
    /// As for [`step`](Self::step).
    pub async fn try_step<T, E, F, Fut>(&self, key: impl Into<String>, f: F) -> Result<T, E>
    where
        T: Serialize + DeserializeOwned,
        E: From<Error>,
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        self.run_step(key.into(), false, f).await
    }

    /// Like [`step`](Self::step), for a function that may run twice: for example, a request that sets a value, or one that
    /// carries an idempotency key.
    ///
    /// The difference matters in [tasks](crate::tasks): if the process of a task dies in the middle of a step, another process
    /// repeats the step if it is idempotent. Otherwise it fails the task, because the step may or may not have been done.
    ///
    /// ```
    /// # use oxmcp::RequestContext;
    /// # async fn write_file(_text: &str) -> u64 { 7 }
    /// async fn save(cx: RequestContext) -> oxmcp::Result<u64> {
    ///     // Writing it twice gives the same file.
    ///     cx.step_idempotent("write", || write_file("the report")).await
    /// }
    /// # let _ = oxmcp::Tool::new("save", "Save the report", save);
    /// ```
    ///
    /// # Errors
    /// Those of [`step`](Self::step).
    ///
    /// # Cancel safety
    /// As for [`step`](Self::step).
    pub async fn step_idempotent<T, F, Fut>(&self, key: impl Into<String>, f: F) -> Result<T>
    where
        T: Serialize + DeserializeOwned,
        F: FnOnce() -> Fut,
        Fut: Future<Output = T>,
    {
        self.try_step_idempotent(key, || async { Ok(f().await) })
            .await
    }

    /// Like [`step_idempotent`](Self::step_idempotent), for a function that can fail. An error is not stored.
    ///
    /// # Errors
    /// Those of [`step`](Self::step), and those of the function.
    ///
    /// # Cancel safety
    /// As for [`step`](Self::step).
    pub async fn try_step_idempotent<T, E, F, Fut>(
        &self,
        key: impl Into<String>,
        f: F,
    ) -> Result<T, E>
    where
        T: Serialize + DeserializeOwned,
        E: From<Error>,
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        self.run_step(key.into(), true, f).await
    }

    async fn run_step<T, E, F, Fut>(&self, key: String, is_idempotent: bool, f: F) -> Result<T, E>
    where
        T: Serialize + DeserializeOwned,
        E: From<Error>,
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let journal = self.parts().journal();
        if journal.is_suspended() {
            return Err(Error::suspended().into());
        }
        if let Some(value) = detach::begin_step(self, journal, &key, is_idempotent).await? {
            let read = serde_json::from_str(value.get());
            return read.map_err(|error| unfit(&key, "read", error).into());
        }
        let value = match f().await {
            Ok(value) => value,
            Err(error) => {
                journal.fail_step(&key);
                detach::end_step(self, &key, None).await;
                return Err(error);
            }
        };
        let text = to_raw_value(&value).map_err(|error| unfit(&key, "store", error))?;
        journal.record_step(&key, text.clone());
        detach::end_step(self, &key, Some(text)).await;
        Ok(value)
    }

    /// Returns the answers that came with this request (2026-07-28 and later), for handlers that return
    /// [`Reply`](crate::Reply)s. In legacy sessions, returns the answers to the questions that the handler returned last.
    #[must_use]
    pub fn input_responses(&self) -> InputResponses {
        self.parts()
            .journal
            .get()
            .map_or_else(InputResponses::new, |journal| journal.responses())
    }

    /// Returns the unverified state that came with this request, for handlers that return [`Reply`](crate::Reply)s. A client can
    /// send anything there: the handler must protect and check the parts that matter, for example by
    /// [`seal_state`](Self::seal_state).
    /// See [server requirements](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr#server-requirements-basic-workflow).
    #[must_use]
    pub fn request_state(&self) -> Option<String> {
        self.parts().journal.get()?.with_mode(|mode| match mode {
            QuestionMode::Reply(state) => state.clone(),
            QuestionMode::LiveSession | QuestionMode::Rounds(_) => None,
        })
    }

    /// Encrypts a state that the client keeps until it repeats its request, for handlers that return [`Reply`](crate::Reply)s.
    ///
    /// [`open_state`](Self::open_state) opens it for the same [`principal`](Self::principal) and the same values, such as the
    /// name of the tool, until the end of [`Server::state_lifetime`](crate::Server::state_lifetime). Each process with the same
    /// [`Server::state_keys`](crate::Server::state_keys) and the same name of the server can open it.
    ///
    /// ```
    /// use oxmcp::{Reply, RequestContext, Tool, protocol::InputRequiredResult};
    ///
    /// async fn upload(cx: RequestContext) -> oxmcp::Result<Reply<String>> {
    ///     let Some(state) = cx.request_state() else {
    ///         let mut wait = InputRequiredResult::new();
    ///         wait.request_state = Some(cx.seal_state(&["upload"], "part 7")?);
    ///         return Ok(Reply::InputRequired(wait));
    ///     };
    ///     Ok(Reply::Complete(cx.open_state(&["upload"], &state)?))
    /// }
    /// # let _ = Tool::new("upload", "Upload a file in parts", upload);
    /// ```
    ///
    /// # Errors
    /// If the sealed state would exceed [`Limits::max_request_state`](crate::Limits::max_request_state), if this is not a
    /// request to a server, or if the operating system provides no random bytes.
    pub fn seal_state(&self, bound_to: &[&str], state: impl Into<String>) -> Result<String> {
        rounds::seal_own(self, bound_to, state.into())
    }

    /// Decrypts a state of [`seal_state`](Self::seal_state).
    ///
    /// # Errors
    /// If the state was changed, has expired, or was sealed for another principal or other values, or with another key. The
    /// error is the one that clients get for any state that does not open.
    pub fn open_state(&self, bound_to: &[&str], sealed: &str) -> Result<String> {
        rounds::open_own(self, bound_to, sealed)
    }
}

/// A question that was checked and is ready to be asked.
struct Ready {
    key: String,
    request: InputRequest,
    digest: QuestionDigest,
}

async fn ask(cx: &RequestContext, put: Vec<Put>) -> Result<Vec<Answered>> {
    let ready = put
        .into_iter()
        .map(|put| ready(cx, put))
        .collect::<Result<Vec<_>>>()?;
    let journal = can_ask(cx)?;
    let revision = cx.revision();
    let mut answers = Vec::with_capacity(ready.len());
    for question in &ready {
        answers.push(lookup(&journal, question, cx)?);
    }
    let detached = cx.parts().detached.get();
    if revision.is_modern() && detached.is_none() {
        let missing = ready.iter().zip(&answers).filter(|(_, it)| it.is_none());
        let mut is_missing = false;
        for (question, _) in missing {
            journal.suspend(&question.key, question.request.clone());
            is_missing = true;
        }
        if is_missing {
            yield_to_siblings().await;
            return Err(Error::suspended());
        }
    }
    let server = cx.server_session().ok_or_else(no_server)?.server();
    let settings = server.features().ask.clone();
    let waits = ready.iter().zip(answers).map(async |(question, known)| {
        if let Some(value) = known {
            return Ok(value);
        }
        let value = match detached {
            Some(work) => detach::ask(cx, work, &question.key, &question.request).await?,
            None => live_session::ask(cx, &settings, &question.key, &question.request).await?,
        };
        journal.record_answer(&question.key, &question.digest, &value);
        Ok(value)
    });
    let values = try_join_boxed(waits).await?;
    let answered = ready.into_iter().zip(values);
    let answered = answered.map(|(question, value)| Answered {
        key: question.key,
        request: question.request,
        value,
        revision,
    });
    Ok(answered.collect())
}

fn ready(cx: &RequestContext, put: Put) -> Result<Ready> {
    let Put { key, request } = put;
    let mut request = request?;
    request.fit_capabilities(cx.client_capabilities(), cx.revision());
    check::question(&request, cx.client_capabilities(), cx.revision())?;
    let digest = digest(&key, &request, cx.revision())?;
    Ok(Ready {
        key,
        request,
        digest,
    })
}

fn digest(key: &str, request: &InputRequest, revision: Revision) -> Result<QuestionDigest> {
    // The digest covers only the fields that the client sees: others do not make a different question.
    let mut shown = request.clone();
    shown.project(revision);
    let json = shown.to_json().map_err(|error| {
        Error::misuse(format!("could not serialize the question {key:?}: {error}"))
            .with_source(error)
    })?;
    Ok(QuestionDigest::of(&json))
}

/// The digest of a question: of the fields that its client sees. `key` is only for the error message.
///
/// # Errors
/// If the question cannot be written as JSON.
pub(crate) fn question_digest(
    key: &str,
    request: &InputRequest,
    revision: Revision,
) -> Result<String> {
    digest(key, request, revision).map(|digest| digest.as_str().to_owned())
}

/// The answer, if it is known.
fn lookup(
    journal: &Journal,
    question: &Ready,
    cx: &RequestContext,
) -> Result<Option<Box<RawValue>>> {
    match journal.lookup(&question.key, &question.digest)? {
        AnswerLookup::Known(value) => Ok(Some(value)),
        AnswerLookup::Missing => Ok(None),
        AnswerLookup::Unchecked(response) => {
            let revision = cx.revision();
            let Ready { key, request, .. } = question;
            let connection = &cx.parts().connection;
            let value = check::answer(connection, Some(key), request, &response, revision)?;
            journal.record_answer(&question.key, &question.digest, &value);
            Ok(Some(value))
        }
    }
}

/// Returns the journal of a handler that can ask, or an error if it could not get an answer.
fn can_ask(cx: &RequestContext) -> Result<Arc<Journal>> {
    let parts = cx.parts();
    if cx.server_session().is_none() {
        return Err(no_server());
    }
    if parts.id.is_none() {
        return Err(Error::misuse(
            "cannot ask while handling a notification: it has no response that could carry the question",
        ));
    }
    check::batch(cx)?;
    let journal = Arc::clone(parts.journal());
    let modern = cx.revision().is_modern();
    journal.with_mode(|mode| match mode {
        // Its request can no longer carry the questions.
        QuestionMode::Reply(_) if parts.detached.get().is_some() => Ok(()),
        QuestionMode::Reply(_) => Err(Error::misuse(
            "cannot ask here: a handler that returns a `Reply` asks by returning `Reply::InputRequired`",
        )),
        QuestionMode::LiveSession if modern => Err(Error::misuse(
            "cannot ask here: only handlers of tools, prompts and resources can, with the context passed to them",
        )),
        QuestionMode::LiveSession | QuestionMode::Rounds(_) => Ok(()),
    })?;
    Ok(journal)
}

fn no_server() -> Error {
    Error::misuse("cannot ask here: only the handlers of a server can ask its client")
}

/// Yields, so that futures joined with this one can ask in the same round.
async fn yield_to_siblings() {
    let mut polled = false;
    poll_fn(|cx| {
        if polled {
            return Poll::Ready(());
        }
        polled = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn unfit(key: &str, what: &str, error: serde_json::Error) -> Error {
    Error::misuse(format!(
        "could not {what} the result of step {key:?}: {error}"
    ))
    .with_source(error)
}
