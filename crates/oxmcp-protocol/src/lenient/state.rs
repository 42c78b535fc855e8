//! The state of a lenient reading: the place, the repairs so far, what was tolerated, and the budget of work.

use std::cell::{Cell, RefCell};

use oxmcp_json::Text;

use super::{
    Leniency, Tolerated,
    error::{Error, Step, pointer},
};

/// The maximum number of attempts at one entry of a list, and at a message as a whole.
const MAX_ATTEMPTS: usize = 16;
/// The maximum number of tolerated deviations that are reported for one message.
const MAX_REPORTED: usize = 16;
/// All repeated attempts together read at most this multiple of the message.
const MAX_WORK: usize = 3;

/// A repair of one place.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Repair {
    /// The member or item is skipped.
    LeaveOut,
    /// The tagged union is read as an unknown variant.
    Unknown,
}

/// The state of the reading of one message.
pub(crate) struct State {
    place: RefCell<Vec<Step>>,
    /// The repairs, each with its place and the reason for it.
    repairs: RefCell<Vec<(Vec<Step>, Repair, String)>>,
    pub(crate) tolerated: RefCell<Vec<Tolerated>>,
    /// The number of bytes that repeated attempts may still read.
    budget: Cell<usize>,
    /// Whether an error was found that no repair may hide.
    pub(crate) is_final: Cell<bool>,
}

impl State {
    pub(crate) fn new(length: usize) -> Self {
        Self {
            place: RefCell::default(),
            repairs: RefCell::default(),
            tolerated: RefCell::default(),
            budget: Cell::new(length.saturating_mul(MAX_WORK)),
            is_final: Cell::new(false),
        }
    }

    /// Notes a deviation at the current place, once.
    pub(crate) fn tolerate(&self, leniency: Leniency) {
        let place = pointer(&self.place.borrow());
        self.note(leniency, place);
    }

    pub(crate) fn note(&self, leniency: Leniency, place: String) {
        self.report(Tolerated::new(leniency, place));
    }

    fn report(&self, new: Tolerated) {
        let mut tolerated = self.tolerated.borrow_mut();
        let is_known = |it: &Tolerated| it.leniency == new.leniency && it.place == new.place;
        if tolerated.iter().any(is_known) {
            return;
        }
        if tolerated.len() == MAX_REPORTED {
            // A loss is reported in place of a deviation that another one of the same kind stands for.
            let stands_again = |(index, it): &(usize, &Tolerated)| {
                let before = tolerated.iter().take(*index);
                before
                    .into_iter()
                    .any(|other| other.leniency == it.leniency)
            };
            let mut others = tolerated.iter().enumerate();
            let is_replaceable =
                |it: &(usize, &Tolerated)| !it.1.leniency.leaves_out() && stands_again(it);
            match others.rfind(is_replaceable) {
                Some((index, _)) if new.leniency.leaves_out() => drop(tolerated.remove(index)),
                _ => return,
            }
        }
        tolerated.push(new);
    }

    /// Runs `read` at a part of the current value, and gives an error from it its place.
    pub(crate) fn at<T>(
        &self,
        step: Step,
        read: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.place.borrow_mut().push(step);
        let result = read().map_err(|error| self.placed(error));
        self.place.borrow_mut().pop();
        result
    }

    /// Gives an error its place, unless it comes from a part of the current value.
    pub(crate) fn placed(&self, mut error: Error) -> Error {
        if error.place.is_none() {
            error.place = Some(self.place.borrow().clone());
        }
        error
    }

    /// Whether the part is left out by an earlier attempt.
    pub(crate) fn leaves_out(&self, step: &Step) -> bool {
        let repairs = self.repairs.borrow();
        let place = self.place.borrow();
        repairs.iter().any(|(at, repair, _)| {
            *repair == Repair::LeaveOut
                && at
                    .split_last()
                    .is_some_and(|(last, parent)| last == step && *parent == **place)
        })
    }

    /// Whether the current value is read as an unknown variant of its union.
    pub(crate) fn is_unknown(&self) -> bool {
        let repairs = self.repairs.borrow();
        let place = self.place.borrow();
        repairs
            .iter()
            .any(|(at, repair, _)| *repair == Repair::Unknown && *at == *place)
    }
}

/// The attempts at an entry of a list, or at the message as a whole.
pub(crate) struct Attempts<'s, 'de> {
    pub(crate) state: &'s State,
    text: Text<'de>,
    made: usize,
    is_over: bool,
    /// The number of repairs that belong to values around this one.
    outer: usize,
}

impl<'s, 'de> Attempts<'s, 'de> {
    pub(crate) fn new(state: &'s State, text: Text<'de>) -> Self {
        Self {
            state,
            text,
            made: 0,
            is_over: false,
            outer: state.repairs.borrow().len(),
        }
    }

    /// The text for the next attempt, if there may be one.
    pub(crate) fn next(&mut self) -> Option<Text<'de>> {
        let cost = self.text.get().len();
        let budget = self.state.budget.get();
        if self.made > 0 {
            if self.is_over
                || self.made == MAX_ATTEMPTS
                || self.state.is_final.get()
                || budget < cost
            {
                return None;
            }
            self.state.budget.set(budget - cost);
        }
        self.made += 1;
        Some(self.text)
    }

    /// Takes note of the failure of the last attempt: the next one is made with a repair, if there is one. Returns the reason.
    pub(crate) fn failed(&mut self, error: Error) -> String {
        let error = self.state.placed(error);
        let message = error.to_string();
        if error.is_final {
            self.state.is_final.set(true);
            self.is_over = true;
            return message;
        }
        let own = self.state.place.borrow().len();
        let place = error.place.unwrap_or_default();
        let mut repairs = self.state.repairs.borrow_mut();
        let has = |repair: &Repair| {
            repairs
                .iter()
                .any(|(at, it, _)| it == repair && *at == place)
        };
        if error.is_tagged && !has(&Repair::Unknown) {
            // The block is kept as it came.
            repairs.retain(|(at, ..)| !(at.len() > place.len() && at.starts_with(&place)));
            repairs.push((place, Repair::Unknown, message.clone()));
        } else if place.len() > own && !has(&Repair::LeaveOut) {
            repairs.push((place, Repair::LeaveOut, message.clone()));
        } else {
            self.is_over = true;
        }
        message
    }

    /// Ends the attempts with success: reports the repairs that were made.
    pub(crate) fn succeeded(&self) {
        let repairs = self.state.repairs.borrow();
        for (place, repair, reason) in repairs.iter().skip(self.outer) {
            let leniency = match (repair, place.last()) {
                (Repair::Unknown, _) => Leniency::UnknownBlock,
                (Repair::LeaveOut, Some(Step::Item(_))) => Leniency::EntryLeftOut,
                (Repair::LeaveOut, _) => Leniency::MemberLeftOut,
            };
            self.state.report(Tolerated {
                detail: reason.clone(),
                ..Tolerated::new(leniency, pointer(place))
            });
        }
    }

    /// Ends the attempts without success: the entry is left out.
    pub(crate) fn give_up(&self, reason: &str) {
        self.state.report(Tolerated {
            detail: reason.to_owned(),
            ..Tolerated::new(Leniency::EntryLeftOut, pointer(&self.state.place.borrow()))
        });
    }
}

impl Drop for Attempts<'_, '_> {
    fn drop(&mut self) {
        self.state.repairs.borrow_mut().truncate(self.outer);
    }
}
