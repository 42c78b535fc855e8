use std::{
    fmt,
    future::{Future, IntoFuture},
    pin::Pin,
    task::{Context, Poll},
};

use crate::{
    jsonrpc::write_notification,
    protocol::{Notification, ProgressParams, Project, method},
    session::{BoxFuture, RequestContext},
};

/// A report of progress that is about to be sent; made by [`RequestContext::progress`]. Await it.
#[must_use = "progress is reported when this is awaited"]
pub struct Progress<'a> {
    context: &'a RequestContext,
    /// `None` where the caller did not ask for progress.
    params: Option<ProgressParams>,
}

impl<'a> Progress<'a> {
    pub(super) fn new(context: &'a RequestContext, done: f64) -> Self {
        let token = context.parts().progress_token.clone();
        Self {
            context,
            params: token.map(|token| ProgressParams::new(token, done)),
        }
    }

    /// How much there is in all, where that is known.
    pub fn total(mut self, total: impl Into<f64>) -> Self {
        if let Some(params) = &mut self.params {
            params.total = Some(total.into());
        }
        self
    }

    /// What is being done, for people to read.
    pub fn message(mut self, message: impl Into<String>) -> Self {
        if let Some(params) = &mut self.params {
            params.message = Some(message.into());
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
            params: self.params,
            room: None,
        }
    }
}

impl fmt::Debug for Progress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress")
            .field("params", &self.params)
            .finish_non_exhaustive()
    }
}

/// Reports progress. It is written by hand because a handler may report thousands of times: while there is room it is
/// done at once, and nothing is allocated.
pub struct ReportProgress<'a> {
    context: &'a RequestContext,
    params: Option<ProgressParams>,
    /// Waits for room, where there is none.
    room: Option<BoxFuture<()>>,
}

impl Future for ReportProgress<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let parts = this.context.parts();
        let Some(params) = &mut this.params else {
            return Poll::Ready(());
        };
        if this.room.is_none() && parts.connection.outbox.is_full() {
            let connection = parts.connection.clone();
            this.room = Some(Box::pin(async move { connection.outbox.ready().await }));
        }
        if let Some(room) = &mut this.room
            && room.as_mut().poll(cx).is_pending()
        {
            return Poll::Pending;
        }
        params.project(parts.peer.revision);
        // Numbers and strings can always be serialized, and a peer that is gone wants no progress.
        let _ = parts.connection.notify_raw(|out| {
            if parts.is_over() {
                return Ok(());
            }
            write_notification(out, method::Progress::NAME, params)
        });
        this.params = None;
        Poll::Ready(())
    }
}

impl fmt::Debug for ReportProgress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReportProgress")
            .field("params", &self.params)
            .finish_non_exhaustive()
    }
}
