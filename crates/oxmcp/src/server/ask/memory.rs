use std::{
    any::Any,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::value::RawValue;

use super::state::{Answer, Digest, Record};
use crate::{
    Error, Result,
    protocol::{InputRequest, InputRequests, InputResponses},
    session::{ContextParts, RequestContext},
};

/// What a handler has asked, learned and done, for as long as it serves one request.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// What the handler may do besides remembering.
    mode: Mode,
    /// Answers and steps, those of earlier rounds among them.
    known: Record,
    /// What came with this round, by key.
    responses: InputResponses,
    /// Whether the client gave back what says which questions the responses answer.
    has_state: bool,
    /// What the handler has asked in this round, by key: no key may stand for two questions.
    asked: Vec<(String, Digest)>,
    /// What is to be asked of the client.
    open: InputRequests,
}

/// How the questions of a handler are put.
#[derive(Debug, Default)]
pub(super) enum Mode {
    /// At once, where the client takes requests. Modern clients do not.
    #[default]
    Live,
    /// By answering the request with them. This is what the request was.
    Rounds(Origin),
    /// By the handler itself, which was given this state.
    ByHand(Option<String>),
}

/// What a request asks for, kept until it is known whether the handler asks.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) method: &'static str,
    pub(super) target: Box<str>,
    pub(super) arguments: Box<str>,
}

/// Where the answer to a question is.
pub(super) enum Found {
    Known(Box<RawValue>),
    /// It came with this round and has not been looked at.
    Came(Box<RawValue>),
    Nowhere,
}

impl Memory {
    /// The memory of a context; a new one where there is none.
    pub(super) fn of(parts: &ContextParts) -> Arc<Self> {
        let kept = parts
            .kept
            .get_or_init(|| Arc::<Self>::default() as Arc<dyn Any + Send + Sync>);
        // Nobody else keeps anything there.
        Arc::clone(kept).downcast().unwrap_or_default()
    }

    /// The memory of a context, where there is one.
    pub(super) fn find(cx: &RequestContext) -> Option<Arc<Self>> {
        Arc::clone(cx.parts().kept.get()?).downcast().ok()
    }

    /// Begins a round: with what the client brought, or with nothing.
    pub(super) fn begin(&self, mode: Mode, known: Option<Record>, responses: InputResponses) {
        *self.lock() = State {
            mode,
            has_state: known.is_some(),
            known: known.unwrap_or_default(),
            responses,
            ..State::default()
        };
    }

    /// Runs `f` with how questions are put.
    pub(super) fn with_mode<T>(&self, f: impl FnOnce(&Mode) -> T) -> T {
        f(&self.lock().mode)
    }

    pub(super) fn responses(&self) -> InputResponses {
        self.lock().responses.clone()
    }

    /// Looks for the answer to a question. The question is asked from now on, under this key and no other.
    ///
    /// An answer counts only if it was given to this very question: the state that came with it says what was asked. An
    /// answer that comes without the state counts as well. No client that keeps to the protocol sends one, and one that
    /// makes up what its user has said can do so with a state, too.
    ///
    /// # Errors
    /// Where the key stands for another question already.
    pub(super) fn look(&self, key: &str, question: &Digest) -> Result<Found> {
        let mut state = self.lock();
        match find(&state.asked, key) {
            Some(before) if before != question => {
                return Err(Error::misuse(format!(
                    "the key {key:?} stands for two different questions; give each question a key of its own"
                )));
            }
            Some(_) => {}
            None => state.asked.push((key.to_owned(), question.clone())),
        }
        let known = state.known.answers.iter().find(|it| it.key == key);
        if let Some(answer) = known {
            if answer.question == *question {
                return Ok(Found::Known(answer.value.clone()));
            }
            tracing::debug!(key, "the question has changed; it is asked again");
            return Ok(Found::Nowhere);
        }
        let Some(response) = state.responses.get(key) else {
            return Ok(Found::Nowhere);
        };
        if state.has_state && find(&state.known.open, key) != Some(question) {
            tracing::debug!(
                key,
                "what was answered is not what is asked; it is asked again"
            );
            return Ok(Found::Nowhere);
        }
        Ok(Found::Came(response.get().to_owned()))
    }

    /// Remembers an answer.
    pub(super) fn learn(&self, key: &str, question: &Digest, value: &RawValue) {
        let mut state = self.lock();
        state.known.answers.retain(|it| it.key != key);
        state.known.answers.push(Answer {
            key: key.to_owned(),
            question: question.clone(),
            value: value.to_owned(),
        });
    }

    /// The client is to be asked: from now on the handler is only to come to its end.
    pub(super) fn suspend(&self, key: &str, request: InputRequest) {
        self.lock().open.insert(key, request);
    }

    pub(super) fn is_suspended(&self) -> bool {
        !self.lock().open.is_empty()
    }

    /// What a step came to before.
    pub(super) fn step(&self, key: &str) -> Option<Box<RawValue>> {
        let state = self.lock();
        let mut steps = state.known.steps.iter();
        let found = steps.find(|(name, _)| name == key);
        found.map(|(_, value)| value.clone())
    }

    /// Remembers what a step came to.
    pub(super) fn done(&self, key: &str, value: Box<RawValue>) {
        let mut state = self.lock();
        state.known.steps.retain(|(name, _)| name != key);
        state.known.steps.push((key.to_owned(), value));
    }

    /// What the client is to be asked, and what is to be remembered meanwhile. `None` where nothing is to be asked.
    pub(super) fn take(&self) -> Option<(InputRequests, Record, Origin)> {
        let mut state = self.lock();
        if state.open.is_empty() {
            return None;
        }
        let Mode::Rounds(origin) = &state.mode else {
            return None;
        };
        let origin = origin.clone();
        let open = mem::take(&mut state.open);
        let mut record = mem::take(&mut state.known);
        record.open = mem::take(&mut state.asked);
        record.open.retain(|(key, _)| open.get(key).is_some());
        // What is asked anew has no answer, and what is not asked any more is no longer needed.
        record
            .answers
            .retain(|answer| find(&record.open, &answer.key).is_none());
        Some((open, record, origin))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn find<'a>(questions: &'a [(String, Digest)], key: &str) -> Option<&'a Digest> {
    let mut questions = questions.iter();
    questions.find_map(|(name, digest)| (name == key).then_some(digest))
}
