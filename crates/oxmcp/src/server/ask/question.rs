//! Questions to a client, and reading their answers.

use std::{fmt, slice};

use oxmcp_protocol::{
    CreateMessageParams, CreateMessageResult, ElicitAction, ElicitFormParams, ElicitParams,
    ElicitResult, ElicitUrlParams, EmptyParams, InputRequest, InputResponse, ListRootsResult,
    Payload, Revision, Root,
};
use oxmcp_schema::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{check::wrong_answer, form::Form};
use crate::{
    debug::opaque_debug,
    error::{Error, Result},
};

/// A question to the client, with a key that is unique among the questions of the handler.
///
/// [`RequestContext::ask_all`](crate::RequestContext::ask_all) asks several in one round. A question fails if the user does not
/// agree; [`or_declined`](Self::or_declined) turns the refusal into an answer.
///
/// ```
/// use oxmcp::{UserDecision, JsonSchema, Question, RequestContext, protocol::CreateMessageParams};
///
/// #[derive(serde::Deserialize, JsonSchema)]
/// struct Confirm { backup: bool }
///
/// async fn handler(cx: RequestContext, summary: CreateMessageParams) -> oxmcp::Result<()> {
///     let (confirm, summary) = cx
///         .ask_all((
///             Question::form::<Confirm>("confirm", "Delete the project?"),
///             Question::sample("summary", summary).or_declined(),
///         ))
///         .await?;
///     # let _ = (confirm.backup, summary);
///     Ok(())
/// }
/// ```
#[must_use = "pass the question to `RequestContext::ask_all`"]
pub struct Question<T = ()> {
    pub(crate) put: Put,
    pub(crate) read: Read<T>,
}

/// The key and the request of a question.
#[derive(Debug)]
#[expect(unnameable_types, reason = "what seals `Questions` mentions it")]
pub struct Put {
    pub(crate) key: String,
    /// An error if no client can be asked the question.
    pub(crate) request: Result<InputRequest>,
}

pub(crate) type Read<T> = Box<dyn FnOnce(&Answered) -> Result<T> + Send>;

/// A valid answer and its question.
#[derive(Debug)]
#[expect(unnameable_types, reason = "what seals `Questions` mentions it")]
pub struct Answered {
    pub(crate) key: String,
    pub(crate) request: InputRequest,
    pub(crate) value: Box<RawValue>,
    pub(crate) revision: Revision,
}

/// The decision of a user about a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the protocol has these three")]
pub enum UserDecision<T> {
    /// The user agreed, and gave this answer.
    Accepted(T),
    /// The user declined.
    Declined,
    /// The user did neither, for example by closing the window.
    Cancelled,
}

impl<T> UserDecision<T> {
    /// Returns the answer, if the user agreed.
    #[must_use]
    pub fn accepted(self) -> Option<T> {
        match self {
            Self::Accepted(answer) => Some(answer),
            Self::Declined | Self::Cancelled => None,
        }
    }

    /// Returns the decision, without the answer.
    ///
    /// ```
    /// use oxmcp::{UserDecision, protocol::ElicitAction};
    ///
    /// assert_eq!(UserDecision::Accepted(7).action(), ElicitAction::Accept);
    /// assert_eq!(UserDecision::<u8>::Declined.action(), ElicitAction::Decline);
    /// ```
    #[must_use]
    pub fn action(&self) -> ElicitAction {
        match self {
            Self::Accepted(_) => ElicitAction::Accept,
            Self::Declined => ElicitAction::Decline,
            Self::Cancelled => ElicitAction::Cancel,
        }
    }
}

/// Writes the user's decision in one word: "accepted", "declined" or "cancelled".
impl<T> fmt::Display for UserDecision<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Accepted(_) => "accepted",
            Self::Declined => "declined",
            Self::Cancelled => "cancelled",
        })
    }
}

impl Question {
    /// Asks the user to fill in a form, whose fields are those of `T`.
    /// See [`RequestContext::ask`](crate::RequestContext::ask).
    pub fn form<T>(key: impl Into<String>, message: impl Into<String>) -> Question<T>
    where
        T: DeserializeOwned + JsonSchema + 'static,
    {
        let form = Form::of::<T>();
        let request = match &form {
            Ok(form) => Ok(ElicitParams::form(message, form.schema.clone()).into()),
            Err(error) => Err(Error::misuse(error.message().to_owned())),
        };
        Question::new(key, request, move |answered: &Answered| {
            let content = answered.accepted()?;
            // Without a form the question was not asked, and has no answer.
            let form = form?;
            let checked = form.check(content.get());
            checked.map_err(|problem| answered.wrong(&problem))?;
            let read = serde_json::from_str(content.get());
            read.map_err(|error| answered.wrong(&form.refusal::<T>(&content, &error)))
        })
    }

    /// Asks the user to fill in a hand-written form. The answer is JSON that matches it.
    pub fn form_with(key: impl Into<String>, params: ElicitFormParams) -> Question<Box<RawValue>> {
        Question::new(
            key,
            Ok(ElicitParams::from(params).into()),
            Answered::accepted,
        )
    }

    /// Asks the user to visit a URL. The answer is the user's consent, not the outcome of the visit.
    /// See [`RequestContext::ask_url`](crate::RequestContext::ask_url).
    pub fn url(key: impl Into<String>, message: impl Into<String>, url: impl Into<String>) -> Self {
        Self::url_with(key, ElicitUrlParams::new(message, url))
    }

    /// Asks the user to visit a URL, with custom params, such as an id.
    pub fn url_with(key: impl Into<String>, params: ElicitUrlParams) -> Self {
        let request = Ok(ElicitParams::from(params).into());
        Self::new(key, request, |answered: &Answered| {
            answered.accepted().map(drop)
        })
    }

    /// Asks the client to generate a message with a model.
    /// See [sampling](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling).
    pub fn sample(
        key: impl Into<String>,
        params: CreateMessageParams,
    ) -> Question<CreateMessageResult> {
        Question::new(key, Ok(params.into()), Answered::read)
    }

    /// Asks with a request of the protocol as it is. The answer is the result of the client, whatever the user decided: for
    /// proxies, which pass it on.
    pub fn raw(key: impl Into<String>, request: InputRequest) -> Question<InputResponse> {
        Question::new(key, Ok(request), |answered: &Answered| {
            Ok(InputResponse::from(answered.value.clone()))
        })
    }

    /// Asks for the client's roots.
    /// See [roots](https://modelcontextprotocol.io/specification/2026-07-28/client/roots).
    pub fn roots() -> Question<Vec<Root>> {
        // All such questions have the same answer, so they share a key, which a handler is unlikely to choose.
        let request = Ok(InputRequest::ListRoots(EmptyParams::default()));
        Question::new("roots/list", request, |answered: &Answered| {
            answered.read().map(|result: ListRootsResult| result.roots)
        })
    }
}

impl<T> Question<T> {
    fn new(
        key: impl Into<String>,
        request: Result<InputRequest>,
        read: impl FnOnce(&Answered) -> Result<T> + Send + 'static,
    ) -> Self {
        Self {
            put: Put {
                key: key.into(),
                request,
            },
            read: Box::new(read),
        }
    }

    /// Turns a refusal by the user into an answer instead of an error.
    pub fn or_declined(self) -> Question<UserDecision<T>>
    where
        T: 'static,
    {
        let Self { put, read } = self;
        Question {
            put,
            read: Box::new(move |answered| match read(answered) {
                Ok(answer) => Ok(UserDecision::Accepted(answer)),
                Err(error) if error.is_dismissed() => Ok(UserDecision::Cancelled),
                Err(error) if error.is_declined() => Ok(UserDecision::Declined),
                Err(error) => Err(error),
            }),
        }
    }
}

impl Answered {
    fn read<T: Payload + DeserializeOwned>(&self) -> Result<T> {
        let read = T::from_json(self.value.get());
        read.map_err(|error| self.wrong(&error.to_string()))
    }

    fn wrong(&self, problem: &str) -> Error {
        wrong_answer(
            Some(&self.key),
            self.request.method(),
            problem,
            self.revision,
        )
    }

    /// The content of the form, if the user agreed.
    ///
    /// # Errors
    /// If the user did not agree, in words that a model can act on.
    fn accepted(&self) -> Result<Box<RawValue>> {
        let result: ElicitResult = self.read()?;
        match result.action.refusal(self.request.message()) {
            None => Ok(result.content.unwrap_or_default()),
            Some(refusal) => {
                let dismissed = result.action == ElicitAction::Cancel;
                Err(Error::declined(refusal, dismissed))
            }
        }
    }
}

opaque_debug!([T] Question<T>, |it| { key: it.put.key, request: it.put.request });

/// Questions that can be asked in one round: a [`Question`], a tuple of up to eight, or a `Vec` of them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be asked",
    label = "neither a `Question` nor a tuple or `Vec` of them",
    note = "make questions with `Question::form`, `Question::url`, `Question::sample` and `Question::roots`"
)]
pub trait Questions: Parts {}

impl<T: Parts> Questions for T {}

/// The operations of questions that asking needs. The trait cannot be named outside of this crate, which seals [`Questions`].
#[expect(unnameable_types, reason = "that seals the trait above")]
pub trait Parts {
    /// The type of the answers.
    type Answers;

    /// Adds the questions to be sent to the client to `questions`, in order, and returns the reader of their answers.
    #[doc(hidden)]
    fn put(self, questions: &mut Vec<Put>) -> Reader<Self::Answers>;
}

/// Reads one answer for each question, from the front.
pub(crate) type Reader<T> = Box<dyn FnOnce(&mut slice::Iter<'_, Answered>) -> Result<T> + Send>;

impl<T: 'static> Parts for Question<T> {
    type Answers = T;

    fn put(self, questions: &mut Vec<Put>) -> Reader<T> {
        questions.push(self.put);
        let read = self.read;
        Box::new(move |answers| {
            let answer = answers.next().ok_or_else(lost)?;
            read(answer)
        })
    }
}

impl<T: Parts> Parts for Vec<T>
where
    T::Answers: 'static,
{
    type Answers = Vec<T::Answers>;

    fn put(self, questions: &mut Vec<Put>) -> Reader<Vec<T::Answers>> {
        let readers: Vec<_> = self.into_iter().map(|it| it.put(questions)).collect();
        Box::new(move |answers| readers.into_iter().map(|read| read(answers)).collect())
    }
}

macro_rules! tuples {
    ($( ($($name:ident)+) )+) => {$(
        impl<$($name: Parts),+> Parts for ($($name,)+)
        where
            $($name::Answers: 'static,)+
        {
            type Answers = ($($name::Answers,)+);

            #[expect(non_snake_case, reason = "the values are named like their types")]
            fn put(self, questions: &mut Vec<Put>) -> Reader<Self::Answers> {
                let ($($name,)+) = self;
                $(let $name = $name.put(questions);)+
                Box::new(move |answers| Ok(($($name(answers)?,)+)))
            }
        }
    )+};
}

tuples! {
    (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) (A B C D E F G) (A B C D E F G H)
}

/// The error for a missing answer, which is a bug: either all questions are answered, or none.
fn lost() -> Error {
    Error::internal("missing the answer to a question")
}
