//! Progress that this side reports: by the handler of a request, or from elsewhere by the request's token.

use std::{
    future::{Future, IntoFuture},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use oxmcp_protocol::{
    Notification, ProgressParams,
    internal::{Project, write_progress},
    method,
};

use crate::{
    debug::opaque_debug,
    error::{Error, Result},
    session::{
        connection::{Connection, ContextParts, RequestContext},
        task::BoxFuture,
    },
};

impl RequestContext {
    /// Reports progress: how much is done. Say more of it, then await it.
    ///
    /// It is sent only if the caller asked for progress, and costs next to nothing if not. It waits while the caller
    /// reads slower than this writes.
    /// See [progress](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/progress).
    ///
    /// ```no_run
    /// # async fn handler(cx: oxmcp::RequestContext) {
    /// cx.progress(3).total(10).message("reading the third file").await;
    /// # }
    /// ```
    ///
    /// # Cancel safety
    /// Cancel safe: dropped while it waits, nothing has been sent.
    pub fn progress(&self, done: impl ProgressAmount) -> Progress<'_> {
        Progress::new(self, done.to_f64())
    }
}

impl Connection {
    /// Remembers a request whose sender asks for progress.
    pub(crate) fn note_progress_token(&self, context: &Arc<ContextParts>) {
        if context.progress_token.is_some() {
            self.progress_tokens().add(context, ContextParts::is_over);
        }
    }

    /// Reports progress to the caller that gave the token, on the stream of that request and before its answer. Where there is
    /// no such request, or it was answered, nothing is sent.
    pub(crate) async fn report(&self, mut params: ProgressParams) -> Result<()> {
        if self.is_cut() {
            return Err(Error::closed("the session has ended"));
        }
        let token = Some(&params.progress_token);
        let is_meant = |it: &ContextParts| it.progress_token.as_ref() == token && !it.is_over();
        let Some(request) = self.progress_tokens().find(is_meant) else {
            tracing::debug!("progress with the token of no request was not sent");
            return Ok(());
        };
        params.project(request.peer.revision);
        let context = RequestContext::new(request);
        context
            .send_notification(method::Progress::NAME, &params)
            .await
    }
}

/// A report of progress that is about to be sent; made by [`RequestContext::progress`]. Await it.
#[must_use = "progress is reported when this is awaited"]
pub struct Progress<'a> {
    context: &'a RequestContext,
    report: Report,
}

/// How much of something there is: any number.
pub trait ProgressAmount {
    /// The number as the protocol has it. Beyond 2^53 it is the nearest that there is.
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

/// How far it is, of how much, and what is being done.
#[derive(Debug)]
struct Report {
    done: f64,
    total: Option<f64>,
    message: Option<String>,
}

impl<'a> Progress<'a> {
    fn new(context: &'a RequestContext, done: f64) -> Self {
        let report = Report {
            done,
            total: None,
            message: None,
        };
        Self { context, report }
    }

    /// How much there is in all, where that is known.
    pub fn total(mut self, total: impl ProgressAmount) -> Self {
        self.report.total = Some(total.to_f64()).filter(|total| total.is_finite());
        self
    }

    /// What is being done, for people to read.
    pub fn message(mut self, message: impl Into<String>) -> Self {
        if self.context.wants_progress() {
            self.report.message = Some(message.into());
        }
        self
    }
}

impl<'a> IntoFuture for Progress<'a> {
    type Output = ();
    type IntoFuture = ReportProgress<'a>;

    fn into_future(self) -> ReportProgress<'a> {
        ReportProgress {
            context: self.context,
            report: Some(self.report),
            room: None,
        }
    }
}

opaque_debug!(Progress<'_>, |it| { report: it.report });

/// The future that reports progress. It is written by hand because a handler may report thousands of times: while there is
/// room it is done at once, and nothing is allocated.
pub struct ReportProgress<'a> {
    context: &'a RequestContext,
    /// `None` once it has been reported.
    report: Option<Report>,
    /// Waits for room, where there is none.
    room: Option<BoxFuture<()>>,
}

impl ReportProgress<'_> {
    /// Appends the report. A peer that is gone, or that has its answer, wants no progress.
    fn write(&self, out: &mut Vec<u8>) {
        let parts = self.context.parts();
        let (Some(token), Some(report)) = (&parts.progress_token, &self.report) else {
            return;
        };
        // What is no number cannot be said in JSON.
        if parts.is_over() || !report.done.is_finite() {
            return;
        }
        let has_messages = parts.peer.revision.has_progress_messages();
        let message = report.message.as_deref().filter(|_| has_messages);
        write_progress(out, token, report.done, report.total, message);
    }
}

impl Future for ReportProgress<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if !this.context.wants_progress() || this.report.is_none() {
            return Poll::Ready(());
        }
        let connection = &this.context.parts().connection;
        if this.room.is_none() {
            if connection.outbox.append_if_room(|out| this.write(out)) {
                this.report = None;
                return Poll::Ready(());
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
        this.report = None;
        Poll::Ready(())
    }
}

opaque_debug!(ReportProgress<'_>, |it| { report: it.report });
