//! The link to a peer: the outbox, the calls and requests in flight, and the notification queue, for any role.

#[cfg(feature = "http-server")]
use std::sync::atomic::AtomicU64;
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicI64, Ordering},
};

use oxmcp_protocol::ErrorCode;
use tokio::runtime::Handle;

#[cfg(feature = "client")]
use crate::transport::traits::UserWaits;
use crate::{
    limits::Limits,
    session::{
        connection::{
            caller::Caller,
            shutdown::{Outcome, Shutdown},
        },
        driver::outbox::Outbox,
        inbound::in_flight::InFlight,
        notifications::{progress_tokens::ProgressTokens, queue::NotificationQueue},
        outbound::{calls::PendingCalls, deadline::PausedDeadlines},
    },
    sync::Mutex,
};

/// One connection, or a branch of one: over HTTP each request of a session has its own outbox, and shares the rest with the
/// session.
///
/// `R` is its role, which the link holds and does not call.
pub(crate) struct Link<R: ?Sized> {
    role: Arc<R>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) outbox: Outbox,
    /// The connection of which this is a branch.
    trunk: Option<Arc<Self>>,
    caller: Caller,
    /// The pending calls, allocated lazily: most connections of servers make none.
    calls: OnceLock<Box<PendingCalls>>,
    in_flight: InFlight,
    progress_tokens: ProgressTokens,
    notifications: OnceLock<Arc<NotificationQueue>>,
    paused_deadlines: PausedDeadlines,
    /// The runtime of the driver.
    pub(crate) runtime: Handle,
    /// The code of the last error response, or 0.
    last_error: AtomicI64,
    /// The seconds after which the request that was refused last may be repeated, or 0.
    #[cfg(feature = "http-server")]
    retry_after: AtomicU64,
    /// Whether reading from the peer is paused.
    held: AtomicBool,
    /// Whether other nodes notify the same client, too.
    #[cfg(feature = "http-server")]
    is_shared: AtomicBool,
    /// The state of its shutdown, whose steps are in `driver/shutdown.rs`.
    pub(crate) shutdown: Shutdown,
    /// The first line from the peer that was not a message. It often shows why the connection does not work.
    pub(crate) stray_line: Mutex<Option<String>>,
}

impl<R: ?Sized> Link<R> {
    /// A connection that will be driven on the current runtime.
    pub(crate) fn new(role: Arc<R>, limits: impl Into<Arc<Limits>>) -> Arc<Self> {
        Self::of(role, limits.into(), Caller::default())
    }

    /// Like [`new`](Self::new), for a known caller.
    pub(crate) fn of(role: Arc<R>, limits: Arc<Limits>, caller: Caller) -> Arc<Self> {
        let max_unsent = limits.max_unsent_bytes;
        Self::build(role, limits, max_unsent, caller, None)
    }

    /// A branch of this connection: output for the requests that arrive on it goes to its own outbox. It has no driver.
    pub(crate) fn branch(self: &Arc<Self>, caller: Caller) -> Arc<Self> {
        let (role, limits) = (Arc::clone(self.role()), Arc::clone(&self.limits));
        let max_unsent = limits.max_unsent_bytes;
        let branch = Self::build(role, limits, max_unsent, caller, Some(Arc::clone(self)));
        #[cfg(feature = "http-server")]
        if let Some(budget) = self.outbox.budget() {
            branch.outbox.count_in(budget, true);
        }
        branch
    }

    /// A connection that is only the trunk of its branches, for messages that belong to no request. So `max_unsent` is small.
    #[cfg(feature = "http-server")]
    pub(crate) fn trunk_of(role: Arc<R>, limits: Arc<Limits>, max_unsent: usize) -> Arc<Self> {
        Self::build(role, limits, max_unsent, Caller::default(), None)
    }

    fn build(
        role: Arc<R>,
        limits: Arc<Limits>,
        max_unsent: usize,
        caller: Caller,
        trunk: Option<Arc<Self>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            role,
            outbox: Outbox::new(max_unsent),
            trunk,
            caller,
            calls: OnceLock::new(),
            in_flight: InFlight::new(limits.max_in_flight),
            progress_tokens: ProgressTokens::default(),
            notifications: OnceLock::new(),
            paused_deadlines: PausedDeadlines::default(),
            runtime: Handle::current(),
            last_error: AtomicI64::new(0),
            #[cfg(feature = "http-server")]
            retry_after: AtomicU64::new(0),
            held: AtomicBool::new(false),
            #[cfg(feature = "http-server")]
            is_shared: AtomicBool::new(false),
            shutdown: Shutdown::default(),
            stray_line: Mutex::default(),
            limits,
        })
    }

    pub(crate) fn role(&self) -> &Arc<R> {
        &self.role
    }

    /// The connection of which this is a branch, or this one if it is a trunk.
    pub(crate) fn trunk(self: &Arc<Self>) -> &Arc<Self> {
        self.trunk.as_ref().unwrap_or(self)
    }

    /// The part that all branches share: the trunk.
    pub(crate) fn shared(&self) -> &Self {
        self.trunk.as_deref().unwrap_or(self)
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.shared().shutdown.is_closing()
    }

    /// Waits until this side wants to close. Cancel safe.
    pub(crate) async fn closing(&self) {
        self.shared().shutdown.closing().await;
    }

    /// Whether nothing can be sent or received anymore.
    pub(crate) fn is_cut(&self) -> bool {
        self.shared().shutdown.is_cut()
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.shared().shutdown.is_ended()
    }

    /// Waits until the connection has ended. Cancel safe.
    pub(crate) async fn ended(&self) -> Outcome {
        self.shared().shutdown.ended().await
    }

    /// Records that from here on other nodes notify the same client, too.
    #[cfg(feature = "http-server")]
    pub(crate) fn note_shared(&self) {
        self.is_shared.store(true, Ordering::Relaxed);
    }

    /// Whether other nodes notify the same client, too.
    #[cfg(feature = "server")]
    pub(crate) fn is_shared(&self) -> bool {
        #[cfg(feature = "http-server")]
        return self.is_shared.load(Ordering::Relaxed);
        #[cfg(not(feature = "http-server"))]
        false
    }

    /// The calls of this side that wait for an answer.
    pub(crate) fn calls(&self) -> &PendingCalls {
        self.shared().calls.get_or_init(Box::default)
    }

    /// The peer's requests that are being served.
    pub(crate) fn in_flight(&self) -> &InFlight {
        &self.shared().in_flight
    }

    /// The peer's requests in flight that have a progress token.
    pub(crate) fn progress_tokens(&self) -> &ProgressTokens {
        &self.shared().progress_tokens
    }

    /// The queue of the users' handlers of notifications.
    pub(crate) fn notifications(&self) -> &Arc<NotificationQueue> {
        let shared = self.shared();
        shared
            .notifications
            .get_or_init(|| NotificationQueue::new(&shared.limits, &self.runtime))
    }

    /// The notification queue, if an answer that arrives now may have to wait until handlers have begun.
    pub(crate) fn awaited_notifications(&self) -> Option<&Arc<NotificationQueue>> {
        let queue = self.shared().notifications.get();
        queue.filter(|queue| queue.is_awaited())
    }

    /// Pauses the timeouts of calls while the transport waits for a person.
    #[cfg(feature = "client")]
    pub(crate) fn pause_for(&self, waits: UserWaits) {
        self.shared().paused_deadlines.count_waits(waits);
    }

    /// The questions of the peer during which no call of this side times out.
    pub(crate) fn paused_deadlines(&self) -> &PausedDeadlines {
        &self.shared().paused_deadlines
    }

    /// Records the code of an error answer.
    pub(crate) fn note_failure(&self, code: ErrorCode) {
        self.last_error.store(code.value(), Ordering::Relaxed);
    }

    /// The code of the last error answer.
    #[cfg(feature = "http-server")]
    pub(crate) fn failed_with(&self) -> Option<ErrorCode> {
        let code = self.last_error.load(Ordering::Relaxed);
        (code != 0).then(|| ErrorCode::from(code))
    }

    /// Records that a request was refused, and may be repeated after this many seconds.
    #[cfg(feature = "http-server")]
    pub(crate) fn note_refusal(&self, retry_after: u64) {
        self.retry_after.store(retry_after, Ordering::Relaxed);
    }

    /// The seconds after which the request that was refused last may be repeated.
    #[cfg(feature = "http-server")]
    pub(crate) fn retry_after(&self) -> Option<u64> {
        let seconds = self.retry_after.load(Ordering::Relaxed);
        (seconds != 0).then_some(seconds)
    }

    /// The caller: the sender of the messages on this connection.
    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Pauses reading from the peer until the returned guard is dropped, because later messages rely on the current work.
    pub(crate) fn hold(self: &Arc<Self>) -> Hold<R> {
        self.held.store(true, Ordering::Relaxed);
        Hold(Arc::clone(self))
    }

    pub(crate) fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed)
    }
}

/// A guard that pauses reading from the peer; created by [`Link::hold`].
pub(crate) struct Hold<R: ?Sized>(Arc<Link<R>>);

impl<R: ?Sized> Drop for Hold<R> {
    fn drop(&mut self) {
        self.0.held.store(false, Ordering::Relaxed);
        self.0.outbox.wake_driver();
    }
}
