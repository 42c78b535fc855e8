//! Outgoing progress: from the handler of a request, or from elsewhere by the request's token.

use std::{
    future::{Future, IntoFuture},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use oxmcp_protocol::{
    Notification, ProgressParams, ProgressToken,
    internal::{Project, write_progress},
    method,
};
use tokio::{task::coop, time::sleep};

use crate::{
    debug::opaque_debug,
    error::{Error, Result},
    limits::Limits,
    session::{
        connection::{Connection, ContextParts, RequestContext},
        handler::detached::DetachedProgress,
        notifications::{
            progress_rate::{Admission, Due, Report},
            progress_tokens::ProgressRequest,
        },
        task::{BoxFuture, spawn_on},
    },
};

impl RequestContext {
    /// Reports progress: how much is done. Set the total and the message, then await it.
    ///
    /// The report is sent only if the caller asked for progress; otherwise it costs almost nothing. It waits while the caller
    /// reads more slowly than the handler writes. Progress must increase: a report that does not exceed the earlier ones is not
    /// sent. Beyond [`Limits::progress_burst`](crate::Limits::progress_burst) reports, rapid reports are coalesced; the last is
    /// always sent.
    /// See [progress](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/progress).
    ///
    /// ```no_run
    /// # async fn handler(cx: oxmcp::RequestContext) {
    /// cx.progress(3).total(10).message("reading the third file").await;
    /// # }
    /// ```
    ///
    /// # Cancel safety
    /// Cancel safe: if the future is dropped while it waits, nothing has been sent.
    #[doc(alias = "notifications/progress")]
    pub fn progress(&self, done: impl ProgressAmount) -> Progress<'_> {
        Progress::new(self, done.to_f64())
    }
}

impl Connection {
    /// Registers a request whose sender asks for progress.
    pub(crate) fn note_progress_token(&self, context: &Arc<ContextParts>) {
        if context.progress_token.is_some() {
            let request = Arc::downgrade(context);
            self.progress_tokens().add(request);
        }
    }

    /// Reports progress to the caller that sent the token, on the stream of its request and before the response. If there is no
    /// such request in flight, nothing is sent.
    pub(crate) async fn report(&self, params: ProgressParams) -> Result<()> {
        if self.is_cut() {
            return Err(Error::closed("the session has ended"));
        }
        match self.progress_tokens().find(&params.progress_token) {
            Some(request) => request.report(params).await,
            None => {
                tracing::debug!("dropping progress without a request in flight");
                Ok(())
            }
        }
    }
}

impl ProgressRequest for ContextParts {
    fn token(&self) -> Option<&ProgressToken> {
        self.progress_token.as_ref()
    }

    fn is_over(&self) -> bool {
        Self::is_over(self)
    }

    fn report(self: Arc<Self>, mut params: ProgressParams) -> BoxFuture<Result<()>> {
        params.project(self.peer.revision);
        let mut report = Some(Report {
            done: params.progress,
            total: params.total,
            message: params.message.clone(),
        });
        let admission = self.progress_rate.admit(&mut report, limits(&self));
        Box::pin(async move {
            match admission {
                Admission::Send => {
                    let context = RequestContext::new(self);
                    context
                        .send_notification(method::Progress::NAME, &params)
                        .await
                }
                Admission::Keep { needs_timer } => {
                    if needs_timer {
                        start_timer(&self);
                    }
                    Ok(())
                }
                Admission::Drop => Ok(()),
            }
        })
    }
}

/// A progress report, created by [`RequestContext::progress`]. Await it to send it.
#[must_use = "await it to report progress"]
pub struct Progress<'a> {
    context: &'a RequestContext,
    report: Report,
}

/// An amount of progress: any number.
pub trait ProgressAmount {
    /// Converts the number to `f64`, the protocol's type. Beyond 2^53 it is rounded to the nearest `f64`.
    fn to_f64(self) -> f64;
}

macro_rules! amounts {
    ($($number:ty)*) => {$(
        impl ProgressAmount for $number {
            fn to_f64(self) -> f64 {
                self.into()
            }
        }
    )*};
}

macro_rules! large_amounts {
    ($($number:ty)*) => {$(
        impl ProgressAmount for $number {
            #[expect(clippy::cast_precision_loss, reason = "as the trait says")]
            fn to_f64(self) -> f64 {
                self as f64
            }
        }
    )*};
}

amounts!(u8 u16 u32 i8 i16 i32 f32 f64);
large_amounts!(u64 usize i64 isize);

impl<'a> Progress<'a> {
    fn new(context: &'a RequestContext, done: f64) -> Self {
        let report = Report {
            done,
            total: None,
            message: None,
        };
        Self { context, report }
    }

    /// Sets the total amount, if it is known.
    pub fn total(mut self, total: impl ProgressAmount) -> Self {
        self.report.total = Some(total.to_f64()).filter(|total| total.is_finite());
        self
    }

    /// Sets a description of the current work, for people to read.
    pub fn message(mut self, message: impl Into<String>) -> Self {
        if self.context.wants_progress() {
            self.report.message = Some(message.into());
        }
        self
    }
}

impl<'a> IntoFuture for Progress<'a> {
    type Output = ();
    type IntoFuture = ProgressReport<'a>;

    fn into_future(self) -> ProgressReport<'a> {
        ProgressReport {
            context: self.context,
            report: Some(self.report),
            room: None,
            needs_timer: false,
        }
    }
}

opaque_debug!(Progress<'_>, |it| { report: it.report });

/// The future that reports progress. It is written by hand because a handler may report thousands of times: while there is
/// space it completes at once, without an allocation.
pub struct ProgressReport<'a> {
    context: &'a RequestContext,
    /// `None` once it has been reported.
    report: Option<Report>,
    /// The future that waits for space, if there is none.
    room: Option<BoxFuture<()>>,
    /// Whether the report was kept for later, and the timer must be started to send it.
    needs_timer: bool,
}

impl ProgressReport<'_> {
    /// Appends the report, unless the rate is exceeded. For a request that was answered or cancelled, nothing is appended.
    fn write(&mut self, out: &mut Vec<u8>) {
        let parts = self.context.parts();
        if !parts.is_over() {
            match parts.progress_rate.admit(&mut self.report, limits(parts)) {
                Admission::Send => {
                    if let Some(report) = &self.report {
                        write_report(out, parts, report);
                    }
                }
                Admission::Keep { needs_timer } => self.needs_timer = needs_timer,
                Admission::Drop => {}
            }
        }
        self.report = None;
    }

    /// Reports to the detached work of the handler, or stores the report in case the handler is detached later. Returns whether
    /// no other report is needed.
    fn tell_detached(&mut self) -> bool {
        let parts = self.context.parts();
        let Some(work) = parts.detached.get() else {
            let report = self.report.as_ref();
            report.inspect(|report| parts.detached.note_progress(|| report.to_detached()));
            return parts.progress_token.is_none();
        };
        self.report
            .take()
            .inspect(|report| work.progress(report.to_detached()));
        true
    }

    fn done(&self) -> Poll<()> {
        if self.needs_timer {
            start_timer(self.context.parts());
        }
        Poll::Ready(())
    }
}

impl Report {
    fn to_detached(&self) -> DetachedProgress {
        DetachedProgress {
            done: self.done,
            total: self.total,
            message: self.message.clone(),
        }
    }
}

fn limits(parts: &ContextParts) -> &Limits {
    &parts.connection.limits
}

fn write_report(out: &mut Vec<u8>, parts: &ContextParts, report: &Report) {
    let Some(token) = parts.progress_token.as_ref().filter(|_| !parts.is_over()) else {
        return;
    };
    let has_messages = parts.peer.revision.has_progress_messages();
    let message = report.message.as_deref().filter(|_| has_messages);
    write_progress(out, token, report.done, report.total, message);
}

/// Sends the kept report, or the one that has replaced it by then, as soon as the rate allows it.
fn start_timer(parts: &Arc<ContextParts>) {
    let parts = Arc::clone(parts);
    let wait = Duration::from_secs(1) / limits(&parts).progress_per_second.max(1);
    let runtime = parts.connection.runtime.clone();
    spawn_on(&runtime, async move {
        let outbox = &parts.connection.outbox;
        let mut is_later = true;
        while is_later && !parts.is_over() {
            sleep(wait).await;
            outbox.ready().await;
            is_later = false;
            outbox.append(|out| match parts.progress_rate.take_due(limits(&parts)) {
                Due::Send(report) => write_report(out, &parts, &report),
                Due::Later => is_later = true,
                Due::Nothing => {}
            });
        }
    });
}

/// Sends the kept report, because the response is about to follow.
pub(crate) fn flush_progress(parts: &ContextParts) {
    if parts.progress_token.is_some()
        && let Some(report) = parts.progress_rate.take_last()
    {
        let outbox = &parts.connection.outbox;
        outbox.append(|out| write_report(out, parts, &report));
    }
}

impl Future for ProgressReport<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        // A handler that only reports progress must yield, too, or a cancellation could not reach it.
        let wants_progress = this.context.wants_progress();
        let rate = &this.context.parts().progress_rate;
        if !wants_progress || rate.is_budgeted() {
            ready!(coop::poll_proceed(cx)).made_progress();
        }
        if !wants_progress || this.report.is_none() {
            return Poll::Ready(());
        }
        // The context lives longer than this borrow of its report.
        let context = this.context;
        if this.tell_detached() {
            return Poll::Ready(());
        }
        let connection = &context.parts().connection;
        if this.room.is_none() {
            if connection.outbox.append_if_room(|out| this.write(out)) {
                return this.done();
            }
            let connection = connection.clone();
            this.room = Some(Box::pin(async move { connection.outbox.ready().await }));
        }
        if let Some(room) = &mut this.room
            && room.as_mut().poll(cx).is_pending()
        {
            return Poll::Pending;
        }
        connection.outbox.append(|out| this.write(out));
        this.done()
    }
}

opaque_debug!(ProgressReport<'_>, |it| { report: it.report });
