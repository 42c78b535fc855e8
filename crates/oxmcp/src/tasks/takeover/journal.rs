//! Journal of a task: what its handler has asked and done, in order, and a run of the handler that is held against it. Nothing here
//! does I/O.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    error::{Error, Result},
    server::{Fact, Known},
};

/// What a handler has asked and done, in order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Journal(Vec<Entry>);

/// A question or a step of a handler.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::tasks) struct Entry {
    /// Its place among the others.
    #[serde(rename = "n")]
    number: usize,
    /// The handler's own.
    #[serde(rename = "k")]
    key: String,
    /// Whether it began while another one was open: then it may come before or after its neighbours.
    #[serde(rename = "o", default)]
    overlaps: bool,
    #[serde(rename = "s")]
    state: State,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum State {
    /// A step has begun.
    Begun { is_idempotent: bool },
    /// A step has this result.
    Done(Box<RawValue>),
    /// A step has failed, and may be tried again.
    Failed,
    /// A question of this digest is asked under this key of the task, if it was not taken back. The answer is kept by that key.
    Asked(String, Option<String>),
    /// A question of this digest was answered before there was a task.
    Answered(String, Box<RawValue>),
}

impl Journal {
    pub(super) fn of(known: Vec<Known>) -> Self {
        let entries = known.into_iter().enumerate();
        let entries = entries.map(|(number, known)| Entry {
            number,
            key: known.key,
            overlaps: known.overlaps,
            state: match known.fact {
                Fact::Answered(digest, answer) => State::Answered(digest, answer),
                Fact::Done(result) => State::Done(result),
                Fact::Begun { is_idempotent } => State::Begun { is_idempotent },
                Fact::Failed => State::Failed,
            },
        });
        Self(entries.collect())
    }

    /// Takes an entry, in place of an earlier state of it.
    pub(super) fn note(&mut self, entry: Entry) {
        match self.0.binary_search_by_key(&entry.number, |it| it.number) {
            Ok(index) => {
                if let Some(place) = self.0.get_mut(index) {
                    *place = entry;
                }
            }
            Err(index) => self.0.insert(index, entry),
        }
    }

    /// How many bytes it keeps, roughly.
    pub(super) fn bytes(&self) -> usize {
        /// What is around the texts.
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
    /// Where a step has begun of which nobody knows whether it was done.
    pub(super) fn check(&self) -> Result<()> {
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

    /// The same, of a question that is asked under this key of the task, or of none any more.
    pub(in crate::tasks) fn asked_as(&self, wire: Option<String>) -> Self {
        let mut entry = self.clone();
        if let State::Asked(_, key) = &mut entry.state {
            *key = wire;
        }
        entry
    }
}

fn interrupted(key: &str) -> Error {
    Error::internal(format!(
        "interrupted in step {key:?}; it may have been done: see whether it was, then call the tool again"
    ))
}

fn differs(how: &str) -> Error {
    Error::internal(format!(
        "the task cannot go on in another process: its handler does not ask and do what it did before, as where that process runs \
         another release; {how}"
    ))
}

/// A run of a handler, held against what the journal has of it.
pub(in crate::tasks) struct Run(Vec<Place>);

struct Place {
    entry: Entry,
    /// Whether this run has come to it.
    is_reached: bool,
    /// Whether it began in this run and has not ended.
    is_open: bool,
}

/// What a step comes to that a run reaches.
pub(in crate::tasks) enum Step {
    Done(Box<RawValue>),
    /// It is to run, once this is stored.
    Begins(Entry),
}

/// A question that a run reaches.
pub(in crate::tasks) struct Question {
    pub(in crate::tasks) entry: Entry,
    /// The answer of before there was a task.
    pub(in crate::tasks) answer: Option<Box<RawValue>>,
    /// The key under which the task has asked it.
    pub(in crate::tasks) wire: Option<String>,
}

impl Run {
    /// The run that has made the journal.
    pub(super) fn first(journal: &Journal) -> Self {
        Self::of(journal, true)
    }

    /// Another run.
    pub(super) fn again(journal: &Journal) -> Self {
        Self::of(journal, false)
    }

    fn of(journal: &Journal, is_reached: bool) -> Self {
        let places = journal.0.iter().map(|entry| Place {
            is_reached,
            is_open: is_reached && matches!(entry.state, State::Begun { .. }),
            entry: entry.clone(),
        });
        Self(places.collect())
    }

    /// The run has come to a step.
    ///
    /// # Errors
    /// Where another run has not come to it there, and where nobody knows whether it was done.
    pub(in crate::tasks) fn step(&mut self, key: &str, is_idempotent: bool) -> Result<Step> {
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

    /// What is to be stored of a step that has ended: with a result, or with a failure. It counts as open until that is
    /// [set](Self::set).
    pub(in crate::tasks) fn step_ended(
        &self,
        key: &str,
        result: Option<Box<RawValue>>,
    ) -> Option<Entry> {
        let mut places = self.0.iter();
        let place = places.rfind(|it| it.is_open && it.entry.is_step() && it.entry.key == key)?;
        let mut entry = place.entry.clone();
        entry.state = result.map_or(State::Failed, State::Done);
        Some(entry)
    }

    /// The run has come to a question.
    ///
    /// # Errors
    /// Where another run has not come to it there.
    pub(in crate::tasks) fn question(&mut self, key: &str, digest: &str) -> Result<Question> {
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

    /// A question or a step is in another state.
    pub(in crate::tasks) fn set(&mut self, entry: &Entry, is_open: bool) {
        let place = self.0.get_mut(entry.number);
        if let Some(place) = place {
            place.entry = entry.clone();
            place.is_open = is_open;
        }
    }

    /// Whether a step is running that must not be cut off.
    pub(in crate::tasks) fn is_in_step(&self) -> bool {
        self.0.iter().any(|it| {
            let must_end =
                matches!(it.entry.state, State::Begun { is_idempotent } if !is_idempotent);
            it.is_open && must_end
        })
    }

    /// Takes in what the handler has done while its task was made. Returns what is to be stored.
    pub(in crate::tasks) fn absorb(&mut self, known: Vec<Known>) -> Vec<Entry> {
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
        self.0.push(Place {
            is_open: matches!(entry.state, State::Begun { .. }),
            entry: entry.clone(),
            is_reached: true,
        });
        entry
    }

    /// # Errors
    /// Where another run has done or asked what this one has not come to, though it has ended.
    pub(in crate::tasks) fn check_whole(&self) -> Result<()> {
        let is_missed = |it: &&Place| {
            let may_be_missed = matches!(
                it.entry.state,
                State::Begun { .. } | State::Failed | State::Asked(_, None)
            );
            !it.is_reached && !may_be_missed
        };
        match self.0.iter().find(is_missed) {
            None => Ok(()),
            Some(missed) => Err(differs(&format!(
                "it has ended without {:?}",
                missed.entry.key
            ))),
        }
    }

    /// The place that the run has come to, with the digest of a question, and without one of a step.
    fn reach(&mut self, key: &str, digest: Option<&str>) -> Result<&mut Place> {
        let index = match self.expected(key, digest)? {
            Some(index) => index,
            None => self.add(key, digest),
        };
        let place = self.0.get_mut(index);
        let place = place.ok_or_else(|| Error::internal("the journal of a task is too short"))?;
        place.is_reached = true;
        Ok(place)
    }

    /// The place of the journal that fits. `None` where there is none and none was expected.
    fn expected(&self, key: &str, digest: Option<&str>) -> Result<Option<usize>> {
        let is_same = |it: &Place| it.entry.key == key && it.entry.is_step() == digest.is_none();
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
                    Err(differs(&format!("the question {key:?} is another one")))
                }
                _ => Ok(Some(index)),
            };
        }
        // A step that is tried again, or a question that was taken back.
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
                "it has come to {key:?} instead of {:?}",
                next.entry.key
            ))),
            _ => Ok(None),
        }
    }

    /// The places that may be reached next: the first that was not, where that stands alone. Where it overlaps with others, what follows
    /// them may follow but one of them, and come before the rest.
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
        self.0.push(Place {
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
