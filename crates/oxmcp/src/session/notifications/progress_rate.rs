//! Rate limit for the progress of one request: reports must increase, and those beyond the rate are coalesced.

use std::{
    mem,
    sync::atomic::{AtomicU32, Ordering},
};

use tokio::time::Instant;

use crate::{limits::Limits, sync::Mutex};

/// The maximum number of reports that are sent between two counts of the tokens.
const MAX_UNCOUNTED: u32 = 16;

/// A report of progress: the amount done, the total, and a description of the current work.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) done: f64,
    pub(crate) total: Option<f64>,
    pub(crate) message: Option<String>,
}

/// The decision about a report.
#[derive(Debug)]
pub(crate) enum Admission {
    /// Send the report now.
    Send,
    /// The report was accepted and is kept, unless a later one replaces it. If `needs_timer`, [`ProgressRate::take_due`] must
    /// be called later.
    Keep { needs_timer: bool },
    /// The report does not exceed an earlier one.
    Drop,
}

/// The result of [`ProgressRate::take_due`].
#[derive(Debug)]
pub(crate) enum Due {
    /// Send the kept report now.
    Send(Report),
    /// A report is kept, but the rate does not allow it yet: the timer must run once more.
    Later,
    /// No report is kept.
    Nothing,
}

/// The number of reports of a request between two that count toward the runtime's budget. Reports that are sent in a row become
/// one write.
const REPORTS_IN_A_ROW: u32 = 4;

/// The rate of the reports of one request.
#[derive(Debug, Default)]
pub(crate) struct ProgressRate {
    /// The token bucket. A request without reports has none.
    bucket: Mutex<Option<Box<Bucket>>>,
    /// The number of reports that were begun, which need not be exact.
    begun: AtomicU32,
}

#[derive(Debug)]
struct Bucket {
    /// The amount of the last report, sent or kept.
    last: f64,
    tokens: f64,
    /// The time at which the tokens were counted.
    counted: Instant,
    /// The number of reports that are sent before the tokens are counted again.
    uncounted: u32,
    kept: Option<Report>,
    has_timer: bool,
}

impl ProgressRate {
    /// Whether the current report counts toward the runtime's budget, so that other tasks get their turn.
    pub(crate) fn is_budgeted(&self) -> bool {
        let begun = self.begun.load(Ordering::Relaxed).wrapping_add(1);
        self.begun.store(begun, Ordering::Relaxed);
        begun.is_multiple_of(REPORTS_IN_A_ROW)
    }

    /// Decides whether a report is sent, kept or dropped.
    pub(crate) fn admit(&self, report: &mut Option<Report>, limits: &Limits) -> Admission {
        let done = report.as_ref().map(|report| report.done);
        // JSON has no NaN and no infinities.
        let Some(done) = done.filter(|done| done.is_finite()) else {
            return Admission::Drop;
        };
        let mut bucket = self.bucket.lock();
        let bucket = bucket.get_or_insert_with(|| Box::new(Bucket::new(limits)));
        if done <= bucket.last {
            return Admission::Drop;
        }
        bucket.last = done;
        if bucket.take_token(limits) {
            bucket.kept = None;
            return Admission::Send;
        }
        bucket.kept = report.take();
        let needs_timer =
            limits.progress_per_second > 0 && !mem::replace(&mut bucket.has_timer, true);
        Admission::Keep { needs_timer }
    }

    /// For the timer: the kept report, if the rate allows it to be sent.
    pub(crate) fn take_due(&self, limits: &Limits) -> Due {
        let mut bucket = self.bucket.lock();
        let Some(bucket) = bucket.as_mut() else {
            return Due::Nothing;
        };
        if bucket.kept.is_some() && !bucket.take_token(limits) {
            return Due::Later;
        }
        bucket.has_timer = false;
        bucket.kept.take().map_or(Due::Nothing, Due::Send)
    }

    /// The kept report, for a request that is about to be answered.
    pub(crate) fn take_last(&self) -> Option<Report> {
        self.bucket.lock().as_mut()?.kept.take()
    }
}

impl Bucket {
    fn new(limits: &Limits) -> Self {
        Self {
            last: f64::NEG_INFINITY,
            tokens: burst(limits),
            counted: Instant::now(),
            uncounted: 0,
            kept: None,
            has_timer: false,
        }
    }

    /// Takes a token, if there is one. For a large bucket, tokens are counted only now and then, because the clock costs as
    /// much as the rest of a report. After a pause the bucket is full, and at most [`MAX_UNCOUNTED`] more reports are sent.
    fn take_token(&mut self, limits: &Limits) -> bool {
        if self.uncounted > 0 && self.tokens >= 1.0 {
            self.uncounted -= 1;
            self.tokens -= 1.0;
            return true;
        }
        self.uncounted = (limits.progress_burst / 64).min(MAX_UNCOUNTED);
        let now = Instant::now();
        let since = now.duration_since(self.counted).as_secs_f64();
        let more = since * f64::from(limits.progress_per_second);
        self.tokens = (self.tokens + more).min(burst(limits));
        self.counted = now;
        let is_any = self.tokens >= 1.0;
        if is_any {
            self.tokens -= 1.0;
        }
        is_any
    }
}

/// The size of a bucket: at least one token, without which no report would ever be sent.
fn burst(limits: &Limits) -> f64 {
    f64::from(limits.progress_burst.max(1))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::advance;

    use super::*;

    /// The number of these reports that are sent at once.
    fn sent(rate: &ProgressRate, limits: &Limits, reports: std::ops::Range<u32>) -> usize {
        let admitted = reports.map(|done| {
            let report = Report {
                done: done.into(),
                total: None,
                message: None,
            };
            rate.admit(&mut Some(report), limits)
        });
        admitted.filter(|it| matches!(it, Admission::Send)).count()
    }

    #[tokio::test(start_paused = true)]
    async fn pause_does_not_extend_a_burst() {
        let limits = Limits::default().progress_burst(10).progress_per_second(10);
        let rate = ProgressRate::default();
        assert_eq!(sent(&rate, &limits, 0..1), 1);
        advance(Duration::from_secs(60)).await;
        assert_eq!(sent(&rate, &limits, 1..100), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn large_bucket_refills_with_bounded_inaccuracy() {
        let limits = Limits::default()
            .progress_burst(2048)
            .progress_per_second(100);
        let rate = ProgressRate::default();
        assert_eq!(sent(&rate, &limits, 0..3000), 2048);
        advance(Duration::from_secs(1)).await;
        assert_eq!(sent(&rate, &limits, 3000..6000), 100);
        advance(Duration::from_secs(60)).await;
        let (more, most) = (
            sent(&rate, &limits, 6000..12000),
            2048 + MAX_UNCOUNTED as usize,
        );
        assert!((2048..=most).contains(&more), "{more}");
    }

    #[tokio::test(start_paused = true)]
    async fn reports_without_burst_are_sent_at_the_rate() {
        let limits = Limits::default().progress_burst(0).progress_per_second(10);
        let rate = ProgressRate::default();
        assert_eq!(sent(&rate, &limits, 0..10), 1);
        advance(Duration::from_millis(100)).await;
        assert_eq!(sent(&rate, &limits, 10..20), 1);
    }
}
