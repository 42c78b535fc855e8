//! The table of this side's calls that wait for a response, with their alarms.

#[cfg(feature = "http-server")]
use std::sync::OnceLock;
use std::{
    collections::{HashMap, hash_map::Entry},
    hash::{BuildHasherDefault, Hasher},
    sync::atomic::{AtomicI64, Ordering},
    task::{Context, Poll, Waker},
};

use oxmcp_json::Text;
use oxmcp_protocol::{
    ProgressParams,
    internal::{ResultIndex, ResultType, peek_result_type},
};
use tokio::{sync::Notify, time::Instant};

#[cfg(feature = "http-server")]
use crate::{debug::opaque_debug, session::task::BoxFuture};
use crate::{
    error::{Error, Result},
    session::{
        notifications::progress_in::ProgressSender,
        task::{Latch, store_waker},
    },
    sync::Mutex,
};

/// The capacity of the table that is kept when no call waits.
const MAX_KEPT: usize = 1024;

/// The outcome of a call.
pub(crate) type Answer = Result<CallResult>;

/// The result of a call, as it was received.
#[derive(Debug)]
pub(crate) struct CallResult {
    pub(crate) json: Box<str>,
    /// The positions of its parts, if it can be a tool's result and they were found while it was checked.
    pub(crate) result_index: Option<ResultIndex>,
}

impl CallResult {
    pub(crate) fn result_type(&self) -> ResultType {
        match self.result_index {
            // A result with a result index is complete.
            Some(_) => ResultType::Complete,
            None => peek_result_type(Text::checked(&self.json)),
        }
    }
}

impl From<Box<str>> for CallResult {
    fn from(json: Box<str>) -> Self {
        Self {
            json,
            result_index: None,
        }
    }
}

/// A call that waits for its response, or whose response waits for the caller.
///
/// A waiting call costs no more than this: it has no channel and no timer.
#[derive(Debug)]
struct PendingCall {
    answer: Option<Answer>,
    /// Whether the response is held until the handlers of earlier notifications have begun.
    is_held: bool,
    /// Whether an error without an ID has arrived that may be the response.
    may_have_failed: bool,
    /// The waker of the task that waits.
    waker: Option<Waker>,
    /// The time at which the task is woken, answered or not. `None` once the alarm has fired.
    alarm: Option<Instant>,
    /// The queue for progress; `None` if the caller asked for none.
    progress: Option<ProgressSender>,
}

/// All waiting calls, by ID. IDs count up and are never reused.
#[derive(Debug, Default)]
pub(crate) struct PendingCalls {
    state: Mutex<State>,
    /// Notified when the first alarm has become earlier.
    earlier: Notify,
    /// Set when there will be no more responses.
    no_more_answers: Latch,
    /// The highest ID of the calls that failed because their peer was lost. All calls up to it have failed or were answered
    /// before.
    failed_up_to: AtomicI64,
    #[cfg(feature = "http-server")]
    announcer: OnceLock<Announcer>,
}

/// A function that is called for each call before it is sent. Its result is dropped when the call has ended.
#[cfg(feature = "http-server")]
pub(crate) struct Announcer(Announce);

#[cfg(feature = "http-server")]
opaque_debug!(Announcer);

#[cfg(feature = "http-server")]
pub(crate) type Announce = Box<dyn Fn(i64) -> BoxFuture<Announced> + Send + Sync>;

/// A guard of an announced call, which other nodes know until it is dropped.
#[cfg(feature = "http-server")]
pub(crate) type Announced = Box<dyn Announcement>;

/// The announcement of a call, which ends when it is dropped.
#[cfg(feature = "http-server")]
pub(crate) trait Announcement: Send + Sync {}

#[derive(Debug, Default)]
struct State {
    last_id: i64,
    calls: HashMap<i64, PendingCall, BuildHasherDefault<IdHasher>>,
    /// The number of calls without an answer.
    unanswered: usize,
    /// The number of calls that are not in flight now, but will be repeated.
    continued: usize,
    /// The ID of the last call before the last notification, as long as no later call was answered: an error without an ID may
    /// be the peer's response to that notification.
    notified_after: Option<i64>,
    /// The next alarm that the timer knows of. `None` if no timer runs.
    next_alarm: Option<Instant>,
    /// The reason why there will be no more responses.
    closed: Option<String>,
}

/// The call that an error without an ID answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Addressee {
    Call(i64),
    /// This call, or a notification that was sent before it.
    CallOrNotification(i64),
    Unknown,
}

/// A hasher of IDs. This side chooses them, so a peer cannot make them collide, and each call is looked up three times.
#[derive(Debug, Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_i64(i64::from(*byte));
        }
    }

    fn write_i64(&mut self, id: i64) {
        // The multiplier of the golden ratio also spreads neighbors in the upper bits.
        self.0 = (self.0 ^ id.cast_unsigned()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Whether a timer that calls [`PendingCalls::ring`] must be started.
pub(crate) type NeedsTimer = bool;

impl PendingCalls {
    /// Sets the ID after which the IDs of calls begin.
    #[cfg(feature = "http-server")]
    pub(crate) fn count_from(&self, id: i64) {
        self.state.lock().last_id = id;
    }

    /// Sets the function that announces each call, by its ID, before it is sent: other nodes may receive its response.
    #[cfg(feature = "http-server")]
    pub(crate) fn announce_by(&self, announce: Announce) {
        // It is set only once.
        let _ = self.announcer.set(Announcer(announce));
    }

    /// Announces a call, if an announcer is set.
    #[cfg(feature = "http-server")]
    pub(crate) async fn announce(&self, id: i64) -> Option<Announced> {
        let Announcer(announce) = self.announcer.get()?;
        Some(announce(id).await)
    }

    /// Whether a call waits for its response.
    pub(crate) fn is_waiting(&self, id: i64) -> bool {
        let state = self.state.lock();
        let call = state.calls.get(&id);
        call.is_some_and(|call| call.answer.is_none())
    }

    /// Enters a call under a new ID, with the alarm at which [`poll`](Self::poll) ends without a response.
    pub(crate) fn enter(
        &self,
        progress: Option<ProgressSender>,
        alarm: Instant,
    ) -> Result<(i64, NeedsTimer)> {
        let mut state = self.state.lock();
        if let Some(reason) = &state.closed {
            return Err(Error::closed(reason.clone()));
        }
        state.unanswered += 1;
        state.last_id += 1;
        let id = state.last_id;
        let call = PendingCall {
            answer: None,
            is_held: false,
            may_have_failed: false,
            waker: None,
            alarm: Some(alarm),
            progress,
        };
        state.calls.insert(id, call);
        Ok((id, self.note_alarm(&mut state, alarm)))
    }

    /// Sets another alarm for a call.
    pub(crate) fn set_alarm(&self, id: i64, alarm: Instant) -> NeedsTimer {
        let mut state = self.state.lock();
        match state.calls.get_mut(&id) {
            Some(call) => call.alarm = Some(alarm),
            None => return false,
        }
        self.note_alarm(&mut state, alarm)
    }

    fn note_alarm(&self, state: &mut State, alarm: Instant) -> NeedsTimer {
        if state.next_alarm.is_some_and(|next| next <= alarm) {
            return false;
        }
        self.earlier.notify_one();
        state.next_alarm.replace(alarm).is_none()
    }

    /// Removes a call that is no longer awaited. Returns whether it had no response yet.
    pub(crate) fn leave(&self, id: i64) -> bool {
        let mut state = self.state.lock();
        let call = state.calls.remove(&id);
        state.free_unused();
        let unanswered = call.is_some_and(|call| call.answer.is_none());
        state.unanswered -= usize::from(unanswered);
        unanswered
    }

    /// Answers a call. Returns the response as an error if no call waits for it.
    pub(crate) fn answer(&self, id: i64, answer: Answer) -> Result<(), Answer> {
        self.store_answer(id, answer, false)
    }

    /// Like [`answer`](Self::answer), for a response that the caller gets only after [`release`](Self::release).
    pub(crate) fn answer_held(&self, id: i64, answer: Answer) -> Result<(), Answer> {
        self.store_answer(id, answer, true)
    }

    /// Passes a held response to its caller, if the call still waits.
    pub(crate) fn release(&self, id: i64) {
        let mut state = self.state.lock();
        let Some(call) = state.calls.get_mut(&id) else {
            return;
        };
        call.is_held = false;
        let waker = call.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Passes all held responses to their callers, because the handlers that they wait for will never begin.
    pub(crate) fn release_all(&self) {
        let mut state = self.state.lock();
        let held = state.calls.values_mut().filter(|call| call.is_held);
        let wakers: Vec<_> = held
            .filter_map(|call| {
                call.is_held = false;
                call.waker.take()
            })
            .collect();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Records that a notification is sent.
    pub(crate) fn note_notification(&self) {
        let mut state = self.state.lock();
        state.notified_after = Some(state.last_id);
    }

    /// The call that an error without an ID answers: the only one that waits, if it was sent after the last notification. Only
    /// the first of several such errors counts.
    pub(crate) fn answered_without_id(&self) -> Addressee {
        let mut state = self.state.lock();
        let notified_after = state.notified_after;
        let mut waiting = state.calls.iter_mut();
        let mut waiting = waiting.by_ref().filter(|(_, call)| call.answer.is_none());
        let (Some((id, call)), None) = (waiting.next(), waiting.next()) else {
            return Addressee::Unknown;
        };
        match notified_after {
            None => Addressee::Call(*id),
            Some(earlier) if *id > earlier && !call.may_have_failed => {
                call.may_have_failed = true;
                Addressee::CallOrNotification(*id)
            }
            Some(_) => Addressee::Unknown,
        }
    }

    fn store_answer(&self, id: i64, answer: Answer, is_held: bool) -> Result<(), Answer> {
        let mut state = self.state.lock();
        let call = state.calls.get_mut(&id);
        let Some(call) = call.filter(|call| call.answer.is_none()) else {
            return Err(answer);
        };
        call.answer = Some(answer);
        call.is_held = is_held;
        let waker = if is_held { None } else { call.waker.take() };
        state.unanswered -= 1;
        state.notified_after.take_if(|earlier| *earlier < id);
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        Ok(())
    }

    /// The response of a call, or `None` once its alarm has fired. Otherwise the task is woken for either.
    pub(crate) fn poll(&self, id: i64, cx: &Context<'_>) -> Poll<Option<Answer>> {
        let mut state = self.state.lock();
        let Entry::Occupied(mut entry) = state.calls.entry(id) else {
            return Poll::Pending;
        };
        let call = entry.get_mut();
        if !call.is_held
            && let Some(answer) = call.answer.take()
        {
            entry.remove();
            state.free_unused();
            return Poll::Ready(Some(answer));
        }
        if call.alarm.is_none() {
            return Poll::Ready(None);
        }
        store_waker(&mut call.waker, cx.waker());
        Poll::Pending
    }

    /// For the timer: wakes the calls whose alarms are due, and returns the next alarm. With `None` the timer ends: no call is
    /// left, and the next call needs a new timer.
    pub(crate) fn ring(&self, now: Instant) -> Option<Instant> {
        let mut woken = Vec::new();
        let mut state = self.state.lock();
        let mut next: Option<Instant> = None;
        for call in state.calls.values_mut() {
            match call.alarm {
                Some(alarm) if alarm <= now => {
                    call.alarm = None;
                    woken.extend(call.waker.take());
                }
                Some(alarm) => next = Some(next.map_or(alarm, |next| next.min(alarm))),
                None => {}
            }
        }
        state.next_alarm = next;
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        next
    }

    /// For the timer: waits until there is an earlier alarm than the one it knows. Cancel safe.
    pub(crate) async fn earlier_alarm(&self) {
        self.earlier.notified().await;
    }

    /// Passes progress to its call. Returns whether there is such a call.
    pub(crate) fn progress(&self, params: ProgressParams) -> bool {
        let Some(id) = params.progress_token.own_number() else {
            return false;
        };
        let state = self.state.lock();
        let call = state.calls.get(&id);
        let Some(progress) = call
            .filter(|call| call.answer.is_none())
            .and_then(|call| call.progress.as_ref())
        else {
            return false;
        };
        if !progress.send(params) {
            tracing::warn!(id, "progress queue is full; dropping an update");
        }
        true
    }

    /// Fails all pending and future calls, with `reason`.
    pub(crate) fn close(&self, reason: &str) {
        let mut state = self.state.lock();
        let reason = state
            .closed
            .get_or_insert_with(|| reason.to_owned())
            .clone();
        let wakers = state.fail_unanswered(&reason);
        drop(state);
        self.no_more_answers.set();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Fails all pending calls, with `reason`. Future calls are made. Returns the wakers of the failed calls.
    #[cfg(feature = "client")]
    pub(crate) fn fail_all(&self, reason: &str) -> Vec<Waker> {
        let mut state = self.state.lock();
        self.failed_up_to.store(state.last_id, Ordering::Relaxed);
        state.fail_unanswered(reason)
    }

    /// Whether a call without a response has failed because its peer was lost. Must be called under the lock of the outbox,
    /// under which calls fail.
    pub(crate) fn has_failed(&self, id: i64) -> bool {
        id <= self.failed_up_to.load(Ordering::Relaxed)
    }

    /// Whether there will be no more responses.
    #[cfg(feature = "client")]
    pub(crate) fn is_closed(&self) -> bool {
        self.no_more_answers.is_set()
    }

    /// Waits until there will be no more responses. Cancel safe.
    pub(crate) async fn wait_closed(&self) {
        self.no_more_answers.wait().await;
    }

    /// Records that a call will be repeated; see [`ContinuationGuard`](crate::session::outbound::call::ContinuationGuard).
    pub(crate) fn begin_continuation(&self) {
        self.state.lock().continued += 1;
    }

    pub(crate) fn end_continuation(&self) {
        self.state.lock().continued -= 1;
    }

    /// Whether all calls are answered and none will be repeated, including those whose callers have not read the response yet.
    pub(crate) fn is_empty(&self) -> bool {
        let state = self.state.lock();
        let is_continued = |call: &PendingCall| match &call.answer {
            Some(Ok(result)) => result.result_type() == ResultType::InputRequired,
            _ => false,
        };
        state.unanswered == 0 && state.continued == 0 && !state.calls.values().any(is_continued)
    }
}

impl State {
    /// Answers all pending calls with an error. Returns their wakers.
    fn fail_unanswered(&mut self, reason: &str) -> Vec<Waker> {
        let mut wakers = Vec::new();
        for call in self.calls.values_mut() {
            if call.answer.is_none() {
                call.answer = Some(Err(Error::closed(reason.to_owned())));
                wakers.extend(call.waker.take());
            }
        }
        self.unanswered = 0;
        wakers
    }

    /// Frees the memory that a burst of calls has allocated, once all of them are gone.
    fn free_unused(&mut self) {
        if self.calls.is_empty() && self.calls.capacity() > MAX_KEPT {
            self.calls = HashMap::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, time::Duration};

    use proptest::prelude::*;

    use super::*;

    fn enter(calls: &PendingCalls, alarm: Instant) -> Result<(i64, NeedsTimer)> {
        calls.enter(None, alarm)
    }

    fn poll(calls: &PendingCalls, id: i64) -> Poll<Option<Answer>> {
        calls.poll(id, &Context::from_waker(Waker::noop()))
    }

    fn one(json: &str) -> Answer {
        Ok(CallResult::from(Box::from(json)))
    }

    #[test]
    fn calls_share_one_timer() {
        let calls = PendingCalls::default();
        let now = Instant::now();
        let second = Duration::from_secs(1);
        let enter = |alarm| enter(&calls, now + alarm).unwrap();
        let ((late, first), (early, second_one)) = (enter(second * 3), enter(second));
        assert!(first && !second_one);
        assert_eq!(calls.ring(now), Some(now + second));
        assert!(poll(&calls, early).is_pending());
        assert_eq!(calls.ring(now + second), Some(now + second * 3));
        assert!(matches!(poll(&calls, early), Poll::Ready(None)));
        assert!(poll(&calls, late).is_pending());
        assert!(!calls.set_alarm(early, now + second * 2));
        assert!(poll(&calls, early).is_pending());
        assert_eq!(calls.ring(now + second), Some(now + second * 2));
        assert!(calls.leave(early) && calls.leave(late));
        assert_eq!(calls.ring(now), None);
        assert!(enter(second).1, "the timer has ended");
    }

    #[test]
    fn call_is_answered_once() {
        let calls = PendingCalls::default();
        let (id, _) = enter(&calls, Instant::now()).unwrap();
        assert!(!calls.is_empty());
        assert!(calls.answer(id, one("1")).is_ok());
        assert!(calls.is_empty(), "it waits for nothing but to be looked at");
        assert!(calls.answer(id, one("2")).is_err());
        calls.close("the end");
        let answer = poll(&calls, id);
        assert!(matches!(answer, Poll::Ready(Some(Ok(result))) if &*result.json == "1"));
        assert!(!calls.leave(id));
        assert!(enter(&calls, Instant::now()).is_err());
    }

    #[test]
    fn held_answer_is_delivered_once_released() {
        let calls = PendingCalls::default();
        let now = Instant::now();
        let ids = [(); 3].map(|()| enter(&calls, now).unwrap().0);
        for id in ids {
            assert!(calls.answer_held(id, one("1")).is_ok());
            assert!(poll(&calls, id).is_pending());
            assert!(calls.answer(id, one("2")).is_err());
        }
        assert!(calls.is_empty());
        calls.close("the end");
        let [released, late, given_up] = ids;
        calls.release(released);
        assert!(matches!(poll(&calls, released), Poll::Ready(Some(Ok(_)))));
        calls.release(released);
        // A handler that blocks its thread does not delay the deadline of a call.
        calls.ring(now);
        assert!(matches!(poll(&calls, given_up), Poll::Ready(None)));
        assert!(!calls.leave(given_up), "there is nothing to cancel");
        calls.release_all();
        assert!(matches!(poll(&calls, late), Poll::Ready(Some(Ok(_)))));
    }

    #[test]
    fn memory_of_a_burst_is_freed() {
        let calls = PendingCalls::default();
        let now = Instant::now();
        let stays = enter(&calls, now).unwrap().0;
        let burst: Vec<_> = (0..2 * MAX_KEPT)
            .map(|_| enter(&calls, now).unwrap().0)
            .collect();
        assert!(burst.into_iter().all(|id| calls.leave(id)));
        assert!(calls.leave(stays));
        assert!(calls.state.lock().calls.capacity() <= MAX_KEPT);
        assert!(!calls.leave(stays));
    }

    proptest! {
        /// Some calls are never answered, some late, and most at once.
        #[test]
        fn each_call_gets_its_own_answer(waits in prop::collection::vec(0_usize..200, 0..500)) {
            let calls = PendingCalls::default();
            let mut waiting = BTreeMap::new();
            for (turn, wait) in waits.into_iter().enumerate() {
                let (id, _) = enter(&calls, Instant::now()).unwrap();
                let until = if wait > 190 { usize::MAX } else { turn + wait };
                prop_assert!(waiting.insert(id, until).is_none());
                while let Some((id, _)) = waiting.iter().find(|(_, until)| **until <= turn) {
                    let id = *id;
                    waiting.remove(&id);
                    let json = id.to_string();
                    prop_assert!(calls.answer(id, one(&json)).is_ok());
                    let Poll::Ready(Some(Ok(answer))) = poll(&calls, id) else {
                        panic!("{id} has no answer");
                    };
                    prop_assert_eq!(&*answer.json, &*json);
                    prop_assert!(!calls.leave(id));
                    prop_assert!(calls.answer(id, one(&json)).is_err());
                }
            }
            for id in -1..600 {
                prop_assert_eq!(calls.leave(id), waiting.contains_key(&id));
            }
            prop_assert!(calls.is_empty() && calls.state.lock().calls.is_empty());
        }
    }
}
