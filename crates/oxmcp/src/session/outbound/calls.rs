//! The calls of this side that wait for an answer.

use std::{
    future::poll_fn,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use tokio::{sync::Notify, time::Instant};

use crate::{
    Error, Result,
    jsonrpc::RequestId,
    protocol::{ProgressParams, ResultType},
    session::{
        call_result::CallResult, call_table::CallTable, cancel::CancelSignal,
        progress_queue::ProgressSender, waiting,
    },
};

/// What a call gets.
pub(crate) type Answer = Result<CallResult>;

/// One call that waits, or whose answer waits.
///
/// It is all that a call costs while it waits: no channel and no timer of its own.
#[derive(Debug)]
struct Waiter {
    answer: Option<Answer>,
    /// Who waits.
    waker: Option<Waker>,
    /// When he wants to be woken, answered or not.
    alarm: Option<Instant>,
    /// Where progress goes; `None` where the caller asked for none.
    progress: Option<ProgressSender>,
}

/// All calls that wait, by id. Ids count up and are never used again.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    state: Mutex<State>,
    /// The first alarm is earlier than it was.
    earlier: Notify,
    /// Set when there will be no more answers.
    over: CancelSignal,
}

#[derive(Debug, Default)]
struct State {
    waiting: CallTable<Waiter>,
    /// How many of them are not answered.
    unanswered: usize,
    /// How many are not being made just now, but will be again.
    going_on: usize,
    /// When the clock looks at the alarms next. `None` where there is no clock.
    next_look: Option<Instant>,
    /// Why there will be no more answers.
    closed: Option<String>,
}

/// A call that was entered.
#[derive(Debug)]
pub(crate) struct Entered {
    pub(crate) id: i64,
    /// Whether somebody has to watch the clock from now on: see [`Calls::ring`].
    pub(crate) needs_clock: bool,
}

impl Calls {
    /// The ids of calls come after this one.
    #[cfg(feature = "http-server")]
    pub(crate) fn count_from(&self, id: i64) {
        self.lock().waiting.count_from(id);
    }

    /// Enters a call under a new id. Who waits for it is woken by the answer, or at `alarm`.
    pub(crate) fn enter(
        &self,
        progress: Option<ProgressSender>,
        alarm: Option<Instant>,
        waker: Waker,
    ) -> Result<Entered> {
        let mut state = self.lock();
        if let Some(reason) = &state.closed {
            return Err(Error::closed(reason.clone()));
        }
        state.unanswered += 1;
        let id = state.waiting.insert(Waiter {
            answer: None,
            waker: Some(waker),
            alarm,
            progress,
        });
        let mut needs_clock = false;
        if let Some(alarm) = alarm
            && state.next_look.is_none_or(|next| alarm < next)
        {
            needs_clock = state.next_look.replace(alarm).is_none();
            self.earlier.notify_one();
        }
        Ok(Entered { id, needs_clock })
    }

    /// Takes a call out: nobody waits for it any more. Returns whether its answer had not come.
    pub(crate) fn leave(&self, id: i64) -> bool {
        let mut state = self.lock();
        let waiter = state.waiting.get(id);
        let unanswered = waiter.is_some_and(|waiter| waiter.answer.is_none());
        state.waiting.discard(id);
        state.unanswered -= usize::from(unanswered);
        unanswered
    }

    /// Answers a call. The answer comes back where nobody waits for it.
    pub(crate) fn answer(&self, id: i64, answer: Answer) -> Result<(), Answer> {
        let waker = self.lock().answer(id, answer)?;
        if let Some(waker) = waker {
            waker.wake();
        }
        Ok(())
    }

    /// Answers calls. Who waits for them is put into `wakers`, and is to be woken. The answers come back for which nobody
    /// waits.
    pub(crate) fn answer_all(
        &self,
        answers: impl Iterator<Item = (i64, Answer)>,
        wakers: &mut Vec<Waker>,
    ) -> Vec<(i64, Answer)> {
        let mut unknown = Vec::new();
        let mut state = self.lock();
        for (id, answer) in answers {
            match state.answer(id, answer) {
                Ok(waker) => wakers.extend(waker),
                Err(answer) => unknown.push((id, answer)),
            }
        }
        unknown
    }

    /// Waits for the answer of a call, which has been entered. Cancel safe.
    pub(crate) async fn answered(&self, id: i64) -> Answer {
        poll_fn(|cx| match self.poll(id, cx) {
            Poll::Ready(Some(answer)) => Poll::Ready(answer),
            _ => Poll::Pending,
        })
        .await
    }

    /// The answer of a call, or `None` once its alarm has rung. Otherwise the task is woken then.
    pub(crate) fn poll(&self, id: i64, cx: &Context<'_>) -> Poll<Option<Answer>> {
        let mut state = self.lock();
        let Some(waiter) = state.waiting.get_mut(id) else {
            return Poll::Pending;
        };
        if let Some(answer) = waiter.answer.take() {
            state.waiting.discard(id);
            return Poll::Ready(Some(answer));
        }
        waiting::note(&mut waiter.waker, cx.waker());
        if waiter.alarm.is_none() {
            return Poll::Ready(None);
        }
        Poll::Pending
    }

    /// For the clock: wakes all whose alarm is due. Returns when to look again. With `None` the clock ends: there is
    /// nobody left to wake, and the next who wants to be woken needs another.
    pub(crate) fn ring(&self, now: Instant) -> Option<Instant> {
        let mut due = Vec::new();
        let mut state = self.lock();
        let mut next: Option<Instant> = None;
        for waiter in state.waiting.values_mut() {
            match waiter.alarm {
                Some(alarm) if alarm <= now => {
                    waiter.alarm = None;
                    due.extend(waiter.waker.take());
                }
                Some(alarm) => next = Some(next.map_or(alarm, |next| next.min(alarm))),
                None => {}
            }
        }
        state.next_look = next;
        drop(state);
        due.into_iter().for_each(Waker::wake);
        next
    }

    /// For the clock: waits until it has to look earlier than it was told. Cancel safe.
    pub(crate) async fn earlier(&self) {
        self.earlier.notified().await;
    }

    /// Hands progress to the call that it belongs to. Returns whether there is such a call.
    pub(crate) fn progress(&self, params: ProgressParams) -> bool {
        let Some(id) = params.progress_token.as_number() else {
            return false;
        };
        let state = self.lock();
        let waiter = state.waiting.get(id);
        let Some(progress) = waiter
            .filter(|waiter| waiter.answer.is_none())
            .and_then(|waiter| waiter.progress.as_ref())
        else {
            return false;
        };
        if !progress.send(params) {
            tracing::warn!(
                id,
                "progress came faster than the caller takes it; one update is lost"
            );
        }
        true
    }

    /// Fails all calls that wait and all that come, with `reason`.
    pub(crate) fn close(&self, reason: &str) {
        let mut state = self.lock();
        let reason = state
            .closed
            .get_or_insert_with(|| reason.to_owned())
            .clone();
        let mut wakers = Vec::new();
        for waiter in state.waiting.values_mut() {
            if waiter.answer.is_none() {
                waiter.answer = Some(Err(Error::closed(reason.clone())));
                wakers.extend(waiter.waker.take());
            }
        }
        state.unanswered = 0;
        drop(state);
        self.over.set();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Waits until there will be no more answers. Cancel safe.
    pub(crate) async fn over(&self) {
        self.over.wait().await;
    }

    /// A call will be made again; see [`GoingOn`](crate::session::GoingOn).
    pub(crate) fn goes_on(&self) {
        self.lock().going_on += 1;
    }

    pub(crate) fn goes_on_no_more(&self) {
        self.lock().going_on -= 1;
    }

    /// Whether all calls are answered, and none goes on: not even one whose answer nobody has looked at yet.
    pub(crate) fn is_empty(&self) -> bool {
        let state = self.lock();
        let goes_on = |waiter: &Waiter| match &waiter.answer {
            Some(Ok(result)) => result.result_type() == ResultType::InputRequired,
            _ => false,
        };
        state.unanswered == 0 && state.going_on == 0 && !state.waiting.values().any(goes_on)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Answers a call. Returns who waits for it; the answer where nobody does.
    fn answer(&mut self, id: i64, answer: Answer) -> Result<Option<Waker>, Answer> {
        let waiter = self.waiting.get_mut(id);
        let Some(waiter) = waiter.filter(|waiter| waiter.answer.is_none()) else {
            return Err(answer);
        };
        waiter.answer = Some(answer);
        self.unanswered -= 1;
        Ok(waiter.waker.take())
    }
}

/// The id under which one of our calls is known, where `id` can be one.
pub(crate) fn own_id(id: &RequestId) -> Option<i64> {
    match id {
        RequestId::Number(number) => Some(*number),
        RequestId::String(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn enter(calls: &Calls, alarm: Option<Instant>) -> Result<Entered> {
        calls.enter(None, alarm, Waker::noop().clone())
    }

    fn poll(calls: &Calls, id: i64) -> Poll<Option<Answer>> {
        calls.poll(id, &Context::from_waker(Waker::noop()))
    }

    #[test]
    fn one_clock_rings_for_all_calls() {
        let calls = Calls::default();
        let now = Instant::now();
        let second = Duration::from_secs(1);
        let enter = |alarm| enter(&calls, Some(now + alarm)).unwrap();
        let (late, early) = (enter(second * 3), enter(second));
        assert!(late.needs_clock && !early.needs_clock);
        assert_eq!(calls.ring(now), Some(now + second));
        assert!(poll(&calls, early.id).is_pending());
        assert_eq!(calls.ring(now + second), Some(now + second * 3));
        assert!(matches!(poll(&calls, early.id), Poll::Ready(None)));
        assert!(poll(&calls, late.id).is_pending());
        assert!(calls.leave(early.id) && calls.leave(late.id));
        assert_eq!(calls.ring(now), None);
        assert!(enter(second).needs_clock, "the clock has ended");
    }

    #[test]
    fn a_call_is_answered_once() {
        let calls = Calls::default();
        let id = enter(&calls, None).unwrap().id;
        assert!(!calls.is_empty());
        let one = |json: &str| Ok(CallResult::from(Box::from(json)));
        assert!(calls.answer(id, one("1")).is_ok());
        assert!(calls.is_empty(), "it waits for nothing but to be looked at");
        assert!(calls.answer(id, one("2")).is_err());
        calls.close("the end");
        let answer = poll(&calls, id);
        assert!(matches!(answer, Poll::Ready(Some(Ok(result))) if &*result.json == "1"));
        assert!(!calls.leave(id));
        assert!(enter(&calls, None).is_err());
    }
}
