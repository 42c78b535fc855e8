//! Journal of a handler that asks: its questions, answers and steps, including those of its earlier runs.

use std::mem;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use oxmcp_json::Text;
use oxmcp_protocol::{InputRequest, InputRequests, InputResponses};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    error::{Error, Result},
    session::sealing::sha256,
    sync::Mutex,
};

/// The questions, answers and steps of a handler while it serves one request.
#[derive(Debug, Default)]
pub(crate) struct Journal(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The way in which questions are asked.
    mode: QuestionMode,
    /// Answers and steps, including those of earlier rounds.
    record: JournalRecord,
    /// The responses that came with this round, by key.
    responses: InputResponses,
    /// Whether the client returned the state, which says which questions the responses answer.
    has_state: bool,
    /// The questions of this round, by key: two questions must not share a key.
    asked: Vec<(String, QuestionDigest)>,
    /// The questions to send to the client.
    open: InputRequests,
    /// The questions and steps of this run, in order.
    reached: Vec<Reached>,
}

/// A question or a step that the handler has reached in this run.
#[derive(Debug)]
struct Reached {
    key: String,
    kind: Kind,
    /// Whether another step was running when it began.
    overlaps: bool,
}

#[derive(Debug)]
enum Kind {
    Question(QuestionDigest),
    Step {
        is_idempotent: bool,
        has_failed: bool,
    },
}

/// The record of a journal, which outlives a round.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct JournalRecord {
    /// The time at which its sealed form expires, in seconds since 1970.
    #[serde(rename = "x")]
    pub(crate) expires: u64,
    /// The answers of earlier rounds.
    #[serde(rename = "a", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) answers: Vec<GivenAnswer>,
    /// The results of steps.
    #[serde(rename = "s", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) steps: Vec<(String, Box<RawValue>)>,
    /// The questions that are open, by their digests.
    #[serde(rename = "q", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) open: Vec<(String, QuestionDigest)>,
}

/// An answer, and the question that it answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct GivenAnswer {
    #[serde(rename = "k")]
    pub(crate) key: String,
    #[serde(rename = "q")]
    pub(crate) question: QuestionDigest,
    #[serde(rename = "v")]
    pub(crate) value: Box<RawValue>,
}

/// A short identifier of a question, derived from its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct QuestionDigest(Box<str>);

impl QuestionDigest {
    /// The digest of a question, as JSON.
    pub(crate) fn of(question: &[u8]) -> Self {
        let digest = sha256(&[b"oxmcp question", question]);
        // 128 bits are enough: only the server itself could search for a collision.
        let half = digest.first_chunk::<16>().copied().unwrap_or_default();
        Self(BASE64_URL_SAFE_NO_PAD.encode(half).into())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The recorded fact of a question or a step of a handler, for another run of the handler.
#[derive(Debug)]
pub(crate) struct RecordedAnswer {
    pub(crate) key: String,
    pub(crate) fact: RecordedOutcome,
    /// Whether it began while a step was running, so that the order is not reliable.
    pub(crate) overlaps: bool,
}

/// The state of a question or a step of a handler.
#[derive(Debug)]
pub(crate) enum RecordedOutcome {
    /// The answer to a question, with the question's digest.
    Answered(String, Box<RawValue>),
    /// The result of a step.
    Done(Box<RawValue>),
    /// A step has begun and not ended.
    Begun { is_idempotent: bool },
    /// A step has failed, and may be tried again.
    Failed,
}

/// The way in which the questions of a handler are asked.
#[derive(Debug, Default)]
pub(crate) enum QuestionMode {
    /// By requests, while the handler waits. Modern clients accept no requests.
    #[default]
    LiveSession,
    /// By responding to the handler's request, given here, with the questions.
    Rounds(RoundRequest),
    /// By a [`Reply`](crate::Reply) that the handler returns; the handler was given this state.
    Reply(Option<String>),
}

/// The request that a handler serves, kept until it is known whether the handler asks.
#[derive(Clone, Debug)]
pub(crate) struct RoundRequest {
    pub(crate) method: &'static str,
    /// The name or the URI of the request's target.
    pub(crate) target: Box<str>,
    pub(crate) arguments: Box<str>,
}

impl RoundRequest {
    pub(crate) fn new(method: &'static str, target: &str, arguments: Text<'_>) -> Self {
        Self {
            method,
            target: target.into(),
            arguments: arguments.get().into(),
        }
    }
}

/// The journal's answer to a question.
pub(crate) enum AnswerLookup {
    Known(Box<RawValue>),
    /// The answer came with this round and has not been checked.
    Unchecked(Box<RawValue>),
    Missing,
}

impl Journal {
    /// Begins a round, with the record and the responses that the client sent, if any.
    pub(crate) fn begin(
        &self,
        mode: QuestionMode,
        record: Option<JournalRecord>,
        responses: InputResponses,
    ) {
        *self.0.lock() = State {
            mode,
            has_state: record.is_some(),
            record: record.unwrap_or_default(),
            responses,
            ..State::default()
        };
    }

    /// Runs `f` with the way in which questions are asked.
    pub(crate) fn with_mode<T>(&self, f: impl FnOnce(&QuestionMode) -> T) -> T {
        f(&self.0.lock().mode)
    }

    pub(crate) fn responses(&self) -> InputResponses {
        self.0.lock().responses.clone()
    }

    /// Looks up the answer to a question, and reserves the key for the question.
    ///
    /// An answer counts only if it was given to this very question, as recorded in the state that came with it. An answer
    /// without state is also accepted: no compliant client sends one, and a client that forges its user's answers can do so
    /// with state, too.
    ///
    /// # Errors
    /// If another question has the key.
    pub(crate) fn lookup(&self, key: &str, question: &QuestionDigest) -> Result<AnswerLookup> {
        let mut state = self.0.lock();
        match find(&state.asked, key) {
            Some(before) if before != question => {
                return Err(Error::misuse(format!(
                    "duplicate question key {key:?}: two different questions use it; give each question a unique key"
                )));
            }
            Some(_) => {}
            None => {
                state.asked.push((key.to_owned(), question.clone()));
                state.reach(key, Kind::Question(question.clone()));
            }
        }
        let known = state.record.answers.iter().find(|it| it.key == key);
        if let Some(answer) = known {
            if answer.question == *question {
                return Ok(AnswerLookup::Known(answer.value.clone()));
            }
            tracing::debug!(key, "asking the client again: the question has changed");
            return Ok(AnswerLookup::Missing);
        }
        let Some(response) = state.responses.get(key) else {
            return Ok(AnswerLookup::Missing);
        };
        if state.has_state && find(&state.record.open, key) != Some(question) {
            tracing::debug!(
                key,
                "asking the client again: the answer belongs to another question"
            );
            return Ok(AnswerLookup::Missing);
        }
        Ok(AnswerLookup::Unchecked(response.get().to_owned()))
    }

    /// Records an answer.
    pub(crate) fn record_answer(&self, key: &str, question: &QuestionDigest, value: &RawValue) {
        let mut state = self.0.lock();
        state.record.answers.retain(|it| it.key != key);
        state.record.answers.push(GivenAnswer {
            key: key.to_owned(),
            question: question.clone(),
            value: value.to_owned(),
        });
    }

    /// Adds a question for the client. This suspends the handler: its result is dropped when it ends.
    pub(crate) fn suspend(&self, key: &str, request: InputRequest) {
        self.0.lock().open.insert(key, request);
    }

    pub(crate) fn is_suspended(&self) -> bool {
        !self.0.lock().open.is_empty()
    }

    /// The result of a step that was done before.
    pub(crate) fn step(&self, key: &str) -> Option<Box<RawValue>> {
        let state = self.0.lock();
        let mut steps = state.record.steps.iter();
        let found = steps.find(|(name, _)| name == key);
        found.map(|(_, value)| value.clone())
    }

    /// Records the result of a step.
    pub(crate) fn record_step(&self, key: &str, value: Box<RawValue>) {
        let mut state = self.0.lock();
        state.record.steps.retain(|(name, _)| name != key);
        state.record.steps.push((key.to_owned(), value));
    }

    /// Records that the handler has reached a step, which runs now or was done before.
    pub(crate) fn reach_step(&self, key: &str, is_idempotent: bool) {
        let mut state = self.0.lock();
        for reached in &mut state.reached {
            if let Kind::Step { has_failed, .. } = &mut reached.kind
                && reached.key == key
            {
                *has_failed = false;
                return;
            }
        }
        let has_failed = false;
        state.reach(
            key,
            Kind::Step {
                is_idempotent,
                has_failed,
            },
        );
    }

    /// Records that a step has failed.
    pub(crate) fn fail_step(&self, key: &str) {
        let mut state = self.0.lock();
        for reached in &mut state.reached {
            if let Kind::Step { has_failed, .. } = &mut reached.kind
                && reached.key == key
            {
                *has_failed = true;
            }
        }
    }

    /// The state and the responses passed to a handler that asks by a [`Reply`](crate::Reply). `None` for any other handler.
    pub(crate) fn reply(&self) -> Option<(Option<String>, InputResponses)> {
        let state = self.0.lock();
        match &state.mode {
            QuestionMode::Reply(token) => Some((token.clone(), state.responses.clone())),
            QuestionMode::LiveSession | QuestionMode::Rounds(_) => None,
        }
    }

    /// The facts of the questions and steps so far: those of this run in order, then the rest of those of earlier rounds.
    pub(crate) fn known(&self) -> Vec<RecordedAnswer> {
        let state = self.0.lock();
        let reached = state.reached.iter().filter_map(|it| {
            Some(RecordedAnswer {
                key: it.key.clone(),
                fact: state.fact(it)?,
                overlaps: it.overlaps,
            })
        });
        let mut known: Vec<_> = reached.collect();
        let earlier = |key: &str, is_step: bool| {
            !state
                .reached
                .iter()
                .any(|it| it.key == key && is_step == matches!(it.kind, Kind::Step { .. }))
        };
        let steps = state.record.steps.iter();
        let steps = steps.filter(|(key, _)| earlier(key, true));
        let steps = steps.map(|(key, value)| (key, RecordedOutcome::Done(value.clone())));
        let answers = state.record.answers.iter();
        let answers = answers.filter(|it| earlier(&it.key, false));
        let answers = answers.map(|it| {
            let fact = RecordedOutcome::Answered(it.question.as_str().to_owned(), it.value.clone());
            (&it.key, fact)
        });
        known.extend(steps.chain(answers).map(|(key, fact)| RecordedAnswer {
            key: key.clone(),
            fact,
            overlaps: true,
        }));
        known
    }

    /// The questions of a suspended handler, the record to seal, and the request. `None` if the handler is not suspended.
    pub(crate) fn take_suspended(&self) -> Option<(InputRequests, JournalRecord, RoundRequest)> {
        let mut state = self.0.lock();
        if state.open.is_empty() {
            return None;
        }
        let QuestionMode::Rounds(request) = &state.mode else {
            return None;
        };
        let request = request.clone();
        let open = mem::take(&mut state.open);
        let mut record = mem::take(&mut state.record);
        record.open = mem::take(&mut state.asked);
        record.open.retain(|(key, _)| open.get(key).is_some());
        // Questions that are no longer asked are closed. An open question has no answer yet: an answer under its key belongs to
        // an older question.
        record
            .answers
            .retain(|answer| find(&record.open, &answer.key).is_none());
        Some((open, record, request))
    }
}

impl State {
    fn reach(&mut self, key: &str, kind: Kind) {
        let is_running = |it: &Reached| {
            let begun = matches!(it.kind, Kind::Step { has_failed, .. } if !has_failed);
            begun && !self.record.steps.iter().any(|(key, _)| *key == it.key)
        };
        let overlaps = self.reached.iter().any(is_running);
        self.reached.push(Reached {
            key: key.to_owned(),
            kind,
            overlaps,
        });
    }

    /// The fact, or `None` for a question without an answer.
    fn fact(&self, reached: &Reached) -> Option<RecordedOutcome> {
        match &reached.kind {
            Kind::Question(digest) => {
                let mut answers = self.record.answers.iter();
                let answer = answers.find(|it| it.key == reached.key && it.question == *digest)?;
                let digest = digest.as_str().to_owned();
                Some(RecordedOutcome::Answered(digest, answer.value.clone()))
            }
            Kind::Step {
                is_idempotent,
                has_failed,
            } => {
                let mut steps = self.record.steps.iter();
                let done = steps.find(|(key, _)| *key == reached.key);
                Some(match done {
                    Some((_, value)) => RecordedOutcome::Done(value.clone()),
                    None if *has_failed => RecordedOutcome::Failed,
                    None => RecordedOutcome::Begun {
                        is_idempotent: *is_idempotent,
                    },
                })
            }
        }
    }
}

fn find<'a>(questions: &'a [(String, QuestionDigest)], key: &str) -> Option<&'a QuestionDigest> {
    let mut questions = questions.iter();
    questions.find_map(|(name, digest)| (name == key).then_some(digest))
}
