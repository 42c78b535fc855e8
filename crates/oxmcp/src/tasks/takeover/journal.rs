//! The journal of a task: the questions and steps of its handler, in order, and the comparison of another run with it. Nothing
//! here performs I/O.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    error::{Error, Result},
    session::handler::journal::{RecordedAnswer, RecordedOutcome},
};

/// The questions and steps of a handler, in order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Journal(Vec<Entry>);

/// A question or a step of a handler.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The position among the other entries.
    #[serde(rename = "n")]
    number: usize,
    /// The key that the handler uses.
    #[serde(rename = "k")]
    key: String,
    /// Whether it began while another entry was open. Then another run may reach it before or after its neighbors.
    #[serde(rename = "o", default)]
    overlaps: bool,
    #[serde(rename = "s")]
    state: State,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum State {
    /// A step has begun.
    Begun { is_idempotent: bool },
    /// A step has ended with this result.
    Done(Box<RawValue>),
    /// A step has failed, and may be retried.
    Failed,
    /// A question with this digest was asked under this key of the task, which also has the answer. Without a key it was
    /// withdrawn.
    Asked(String, Option<String>),
    /// A question with this digest was answered before there was a task.
    Answered(String, Box<RawValue>),
}

impl Journal {
    pub(crate) fn of(known: Vec<RecordedAnswer>) -> Self {
        let entries = known.into_iter().enumerate();
        let entries = entries.map(|(number, known)| Entry {
            number,
            key: known.key,
            overlaps: known.overlaps,
            state: match known.fact {
                RecordedOutcome::Answered(digest, answer) => State::Answered(digest, answer),
                RecordedOutcome::Done(result) => State::Done(result),
                RecordedOutcome::Begun { is_idempotent } => State::Begun { is_idempotent },
                RecordedOutcome::Failed => State::Failed,
            },
        });
        Self(entries.collect())
    }

    /// Adds an entry, or replaces an earlier state of it.
    pub(crate) fn note(&mut self, entry: Entry) {
        match self.0.binary_search_by_key(&entry.number, |it| it.number) {
            Ok(index) => {
                if let Some(place) = self.0.get_mut(index) {
                    *place = entry;
                }
            }
            Err(index) => self.0.insert(index, entry),
        }
    }

    /// The approximate size, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        /// The size of an entry without its texts.
        const EACH: usize = 48;
        let of_state = |state: &State| match state {
            State::Begun { .. } | State::Failed => 0,
            State::Done(result) => result.get().len(),
            State::Asked(digest, wire) => digest.len() + wire.as_ref().map_or(0, String::len),
            State::Answered(digest, answer) => digest.len() + answer.get().len(),
        };
        let entries = self.0.iter();
        entries
            .map(|it| EACH + it.key.len() + of_state(&it.state))
            .sum()
    }

    /// # Errors
    /// If a step that is not idempotent has begun, and it is unknown whether it was done.
    pub(crate) fn check(&self) -> Result<()> {
        let unknown =
            |it: &&Entry| matches!(it.state, State::Begun { is_idempotent } if !is_idempotent);
        match self.0.iter().find(unknown) {
            None => Ok(()),
            Some(entry) => Err(interrupted(&entry.key)),
        }
    }
}

impl Entry {
    fn is_step(&self) -> bool {
        !matches!(self.state, State::Asked(..) | State::Answered(..))
    }

    /// The entry of the question under another key of the task, or under none if it was withdrawn.
    pub(crate) fn asked_as(&self, wire: Option<String>) -> Self {
        let mut entry = self.clone();
        if let State::Asked(_, key) = &mut entry.state {
            *key = wire;
        }
        entry
    }
}

fn interrupted(key: &str) -> Error {
    Error::internal(format!(
        "task interrupted in step {key:?}; check whether the step was done before calling the tool again"
    ))
}

fn differs(how: &str) -> Error {
    Error::internal(format!(
        "cannot resume the task: its handler deviates from its first run, perhaps because it was upgraded: {how}"
    ))
}

/// A run of a handler, which is compared with the journal.
pub(crate) struct Run(Vec<ReplayedEntry>);

struct ReplayedEntry {
    entry: Entry,
    /// Whether this run has reached the entry.
    is_reached: bool,
    /// Whether the entry began in this run and has not ended.
    is_open: bool,
}

/// The action for a step that a run reaches.
pub(crate) enum Step {
    Done(Box<RawValue>),
    /// The step must run, once this entry is stored.
    Begins(Entry),
}

/// A question that a run reaches.
pub(crate) struct Question {
    pub(crate) entry: Entry,
    /// The answer, if the question was answered before there was a task.
    pub(crate) answer: Option<Box<RawValue>>,
    /// The key under which the task has asked the question, if it has.
    pub(crate) wire: Option<String>,
}

impl Run {
    /// The run that created the journal.
    pub(crate) fn first(journal: &Journal) -> Self {
        Self::of(journal, true)
    }

    /// A later run, which has not reached any entry yet.
    pub(crate) fn again(journal: &Journal) -> Self {
        Self::of(journal, false)
    }

    fn of(journal: &Journal, is_reached: bool) -> Self {
        let places = journal.0.iter().map(|entry| ReplayedEntry {
            is_reached,
            is_open: is_reached && matches!(entry.state, State::Begun { .. }),
            entry: entry.clone(),
        });
        Self(places.collect())
    }

    /// Notes that the run has reached a step.
    ///
    /// # Errors
    /// If an earlier run did not reach the step at this position, or if it is unknown whether the step was done.
    pub(crate) fn step(&mut self, key: &str, is_idempotent: bool) -> Result<Step> {
        let place = self.reach(key, None)?;
        match &place.entry.state {
            State::Done(result) => return Ok(Step::Done(result.clone())),
            State::Begun { .. } if !place.is_open && !is_idempotent => {
                return Err(interrupted(key));
            }
            _ => {}
        }
        place.entry.state = State::Begun { is_idempotent };
        place.is_open = true;
        Ok(Step::Begins(place.entry.clone()))
    }

    /// The entry to be stored for a step that has ended, with a result or with a failure. The step counts as open until the entry
    /// is [set](Self::set).
    pub(crate) fn step_ended(&self, key: &str, result: Option<Box<RawValue>>) -> Option<Entry> {
        let mut places = self.0.iter();
        let place = places.rfind(|it| it.is_open && it.entry.is_step() && it.entry.key == key)?;
        let mut entry = place.entry.clone();
        entry.state = result.map_or(State::Failed, State::Done);
        Some(entry)
    }

    /// Notes that the run has reached a question.
    ///
    /// # Errors
    /// If an earlier run did not reach the question at this position.
    pub(crate) fn question(&mut self, key: &str, digest: &str) -> Result<Question> {
        let place = self.reach(key, Some(digest))?;
        let (answer, wire) = match &place.entry.state {
            State::Answered(_, answer) => (Some(answer.clone()), None),
            State::Asked(_, wire) => (None, wire.clone()),
            _ => (None, None),
        };
        place.is_open = answer.is_none();
        Ok(Question {
            entry: place.entry.clone(),
            answer,
            wire,
        })
    }

    /// Sets the state of a question or a step.
    pub(crate) fn set(&mut self, entry: &Entry, is_open: bool) {
        let place = self.0.get_mut(entry.number);
        if let Some(place) = place {
            place.entry = entry.clone();
            place.is_open = is_open;
        }
    }

    /// Whether a step is running that must not be interrupted.
    pub(crate) fn is_in_step(&self) -> bool {
        self.0.iter().any(|it| {
            let must_end =
                matches!(it.entry.state, State::Begun { is_idempotent } if !is_idempotent);
            it.is_open && must_end
        })
    }

    /// Adds the questions and steps from the time in which the task was created. Returns the entries to be stored.
    pub(crate) fn absorb(&mut self, known: Vec<RecordedAnswer>) -> Vec<Entry> {
        let mut late = Vec::new();
        for entry in Journal::of(known).0 {
            let is_known = self.0.iter().any(|it| {
                let is_same = it.entry.key == entry.key && it.entry.is_step() == entry.is_step();
                is_same && (!it.is_open || matches!(entry.state, State::Begun { .. }))
            });
            if !is_known {
                late.push(self.absorb_one(entry));
            }
        }
        late
    }

    fn absorb_one(&mut self, mut entry: Entry) -> Entry {
        let mut places = self.0.iter_mut();
        if let Some(place) = places.find(|it| it.is_open && it.entry.key == entry.key) {
            entry.number = place.entry.number;
            place.is_open = false;
            place.entry = entry.clone();
            return entry;
        }
        entry.number = self.0.len();
        entry.overlaps = true;
        self.0.push(ReplayedEntry {
            is_open: matches!(entry.state, State::Begun { .. }),
            entry: entry.clone(),
            is_reached: true,
        });
        entry
    }

    /// # Errors
    /// If this run ended without a question or a step of an earlier run.
    pub(crate) fn check_whole(&self) -> Result<()> {
        let is_missed = |it: &&ReplayedEntry| {
            let may_be_missed = matches!(
                it.entry.state,
                State::Begun { .. } | State::Failed | State::Asked(_, None)
            );
            !it.is_reached && !may_be_missed
        };
        match self.0.iter().find(is_missed) {
            None => Ok(()),
            Some(missed) => Err(differs(&format!("it ended without {:?}", missed.entry.key))),
        }
    }

    /// The entry that the run has reached. `digest` is the digest of a question, and `None` for a step.
    fn reach(&mut self, key: &str, digest: Option<&str>) -> Result<&mut ReplayedEntry> {
        let index = match self.expected(key, digest)? {
            Some(index) => index,
            None => self.add(key, digest),
        };
        let place = self.0.get_mut(index);
        let place = place.ok_or_else(|| Error::internal("the journal of a task is too short"))?;
        place.is_reached = true;
        Ok(place)
    }

    /// The position of the entry that matches. `None` if none matches and none was expected.
    fn expected(&self, key: &str, digest: Option<&str>) -> Result<Option<usize>> {
        let is_same =
            |it: &ReplayedEntry| it.entry.key == key && it.entry.is_step() == digest.is_none();
        let group = self.group();
        let mut due = group
            .clone()
            .filter_map(|index| Some((index, self.0.get(index)?)));
        let found = due.find(|(_, it)| !it.is_reached && is_same(it));
        if let Some((index, place)) = found {
            return match &place.entry.state {
                State::Asked(asked, _) | State::Answered(asked, _)
                    if digest != Some(asked.as_str()) =>
                {
                    Err(differs(&format!("the question {key:?} has changed")))
                }
                _ => Ok(Some(index)),
            };
        }
        // A step that is retried, or a question that was withdrawn.
        let again = self.0.iter().position(|it| {
            let is_again = match &it.entry.state {
                State::Begun { .. } | State::Failed => true,
                State::Asked(asked, None) => digest == Some(asked.as_str()) && !it.is_open,
                _ => false,
            };
            it.is_reached && is_same(it) && is_again
        });
        if again.is_some() {
            return Ok(again);
        }
        let next = self.0.get(group.start);
        let overlaps = group.len() > 1 || next.is_some_and(|it| it.entry.overlaps);
        match next {
            Some(next) if !overlaps => Err(differs(&format!(
                "it reached {key:?} instead of {:?}",
                next.entry.key
            ))),
            _ => Ok(None),
        }
    }

    /// The positions that may be reached next: only the first unreached one, if it does not overlap with others. If it does,
    /// all positions from there on, because an entry after the overlapping ones may depend on only one of them, and come before
    /// the others.
    fn group(&self) -> std::ops::Range<usize> {
        let places = &self.0;
        let Some(first) = places.iter().position(|it| !it.is_reached) else {
            return places.len()..places.len();
        };
        let is_joined = |index: usize| places.get(index).is_some_and(|it| it.entry.overlaps);
        match is_joined(first) || is_joined(first + 1) {
            true => first..places.len(),
            false => first..first + 1,
        }
    }

    fn add(&mut self, key: &str, digest: Option<&str>) -> usize {
        let number = self.0.len();
        let overlaps = self.0.iter().any(|it| it.is_open || !it.is_reached);
        let state = match digest {
            Some(digest) => State::Asked(digest.to_owned(), None),
            None => State::Failed,
        };
        self.0.push(ReplayedEntry {
            entry: Entry {
                number,
                key: key.to_owned(),
                overlaps,
                state,
            },
            is_reached: false,
            is_open: false,
        });
        number
    }
}
