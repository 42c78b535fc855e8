//! The state of a connection, which its driver, its handlers and its session handles share.

#[cfg(feature = "http-server")]
use std::any::Any;
use std::{
    fmt,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
};

use tokio::{runtime::Handle, time::Instant};

use crate::{
    Error, ErrorCode, Limits, Result,
    session::{
        Role, calls::Calls, cancel::CancelSignal, inflight::InFlight, lane::Lane, outbox::Outbox,
        patience::Patience, turn::TurnClock, wanted::ProgressWanted,
    },
};

/// How much of a line that is no message is kept for the diagnosis.
const KEPT_NOISE: usize = 200;

/// One connection, or a branch of one: over HTTP each request of a session has an outbox of its own, and shares all else
/// with the session.
pub(crate) struct Connection {
    role: Arc<dyn Role>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) outbox: Outbox,
    /// What this is a branch of.
    trunk: Option<Arc<Self>>,
    /// Who sent what arrives here.
    origin: Origin,
    /// Most connections of servers never need it.
    calls: OnceLock<Box<Calls>>,
    in_flight: InFlight,
    progress_wanted: ProgressWanted,
    lane: OnceLock<Arc<Lane>>,
    patience: OnceLock<Box<Patience>>,
    pub(super) turns: TurnClock,
    /// Where the driver runs.
    pub(crate) runtime: Handle,
    /// The code of the error that was answered last, or 0.
    failed_with: AtomicI64,
    /// Whether nothing more is taken from the peer for now.
    held: AtomicBool,
    /// Set when this side wants to close.
    closing: CancelSignal,
    /// What is to be done then, where nobody waits for it.
    #[cfg(feature = "http-server")]
    pub(super) on_closing: Mutex<Option<OnClosing>>,
    /// Set when the driver has ended; then `outcome` holds why.
    pub(super) ended: CancelSignal,
    outcome: OnceLock<Outcome>,
    /// The first line from the peer that was no message: it often says why nothing works.
    noise: Mutex<Option<String>>,
}

/// What is done when a connection is to be closed.
#[cfg(feature = "http-server")]
pub(super) type OnClosing = Box<dyn FnOnce() + Send>;

/// What a transport knows of who sent something. Over pipes that is nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    /// Whom it knows to be the caller.
    pub(crate) principal: Option<Arc<str>>,
    /// The request of its own that brought it.
    #[cfg(feature = "http-server")]
    pub(crate) request: Option<Arc<dyn Any + Send + Sync>>,
    /// Whether nothing else comes the same way before it is answered, so that nothing is held up by what takes its time.
    pub(crate) is_alone: bool,
}

/// How a connection ended.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// One of the two sides closed it.
    Closed,
    /// It broke.
    Failed(String),
}

impl Connection {
    /// A connection that is about to be driven, on the runtime that is running.
    pub(crate) fn new(role: Arc<dyn Role>, limits: impl Into<Arc<Limits>>) -> Arc<Self> {
        Self::of(role, limits.into(), Origin::default())
    }

    /// The same for what `origin` sends.
    pub(crate) fn of(role: Arc<dyn Role>, limits: Arc<Limits>, origin: Origin) -> Arc<Self> {
        let max_unsent = limits.max_unsent_bytes;
        Self::grow(role, limits, max_unsent, origin, None)
    }

    /// A branch of this connection: what belongs to the requests that arrive on it goes to an outbox of its own. Nobody
    /// drives it.
    pub(crate) fn branch(self: &Arc<Self>, origin: Origin) -> Arc<Self> {
        let (role, limits) = (Arc::clone(self.role()), Arc::clone(&self.limits));
        let max_unsent = limits.max_unsent_bytes;
        Self::grow(role, limits, max_unsent, origin, Some(Arc::clone(self)))
    }

    /// A connection that is nothing but the trunk of its branches: for what belongs to no request, so few bytes may wait.
    #[cfg(feature = "http-server")]
    pub(crate) fn trunk_of(
        role: Arc<dyn Role>,
        limits: Arc<Limits>,
        max_unsent: usize,
    ) -> Arc<Self> {
        Self::grow(role, limits, max_unsent, Origin::default(), None)
    }

    fn grow(
        role: Arc<dyn Role>,
        limits: Arc<Limits>,
        max_unsent: usize,
        origin: Origin,
        trunk: Option<Arc<Self>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            role,
            outbox: Outbox::new(max_unsent),
            trunk,
            origin,
            calls: OnceLock::new(),
            in_flight: InFlight::new(limits.max_in_flight),
            progress_wanted: ProgressWanted::default(),
            lane: OnceLock::new(),
            patience: OnceLock::new(),
            turns: TurnClock::default(),
            runtime: Handle::current(),
            failed_with: AtomicI64::new(0),
            held: AtomicBool::new(false),
            closing: CancelSignal::default(),
            #[cfg(feature = "http-server")]
            on_closing: Mutex::default(),
            ended: CancelSignal::default(),
            outcome: OnceLock::new(),
            noise: Mutex::default(),
            limits,
        })
    }

    pub(crate) fn role(&self) -> &Arc<dyn Role> {
        &self.role
    }

    /// What this is a branch of, or itself.
    pub(crate) fn trunk(self: &Arc<Self>) -> &Arc<Self> {
        self.trunk.as_ref().unwrap_or(self)
    }

    fn shared(&self) -> &Self {
        self.trunk.as_deref().unwrap_or(self)
    }

    /// The calls of this side that wait for an answer.
    pub(crate) fn calls(&self) -> &Calls {
        self.shared().calls.get_or_init(Box::default)
    }

    /// The peer's requests that are being served.
    pub(crate) fn in_flight(&self) -> &InFlight {
        &self.shared().in_flight
    }

    /// Those of them that want to hear of progress.
    pub(super) fn progress_wanted(&self) -> &ProgressWanted {
        &self.shared().progress_wanted
    }

    /// Where users' handlers of notifications run.
    pub(crate) fn lane(&self) -> &Arc<Lane> {
        let shared = self.shared();
        shared
            .lane
            .get_or_init(|| Lane::new(&shared.limits, &self.runtime))
    }

    /// When it is, for a call that begins.
    pub(crate) fn now(&self) -> Instant {
        self.shared().turns.now()
    }

    pub(super) fn patience(&self) -> &Patience {
        self.shared().patience.get_or_init(Box::default)
    }

    /// Remembers with which error something was answered.
    pub(super) fn note_failure(&self, code: ErrorCode) {
        self.failed_with.store(code.value(), Ordering::Relaxed);
    }

    /// The code of the error that was answered last.
    #[cfg(feature = "http-server")]
    pub(crate) fn failed_with(&self) -> Option<ErrorCode> {
        let code = self.failed_with.load(Ordering::Relaxed);
        (code != 0).then(|| ErrorCode::from(code))
    }

    /// Who sent what arrives here.
    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Asks the driver to close: nothing new is begun, what runs may finish within a bound.
    pub(crate) fn begin_close(&self) {
        let shared = self.shared();
        shared.lane().closing();
        shared.closing.set();
        #[cfg(feature = "http-server")]
        shared.now_closing();
        shared.outbox.call_attention();
    }

    /// Ends the connection without waiting for anything: the peer is beyond hope.
    pub(crate) fn break_off(self: &Arc<Self>, reason: &str) {
        self.cut(Outcome::Failed(reason.to_owned()));
        self.begin_close();
    }

    /// Takes nothing more from the peer until what this returns is dropped: what comes next relies on what is being done.
    pub(crate) fn hold(self: &Arc<Self>) -> Hold {
        self.held.store(true, Ordering::Relaxed);
        Hold(Arc::clone(self))
    }

    pub(crate) fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed)
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.shared().closing.is_set()
    }

    /// Waits until this side wants to close. Cancel safe.
    pub(crate) async fn closing(&self) {
        self.shared().closing.wait().await;
    }

    /// Waits until the connection has ended. Cancel safe.
    pub(crate) async fn ended(&self) -> Outcome {
        let shared = self.shared();
        shared.ended.wait().await;
        shared.outcome.get().cloned().unwrap_or(Outcome::Closed)
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.shared().ended.is_set()
    }

    /// Whether nothing can be sent or received any more.
    pub(crate) fn is_cut(&self) -> bool {
        self.shared().outcome.get().is_some()
    }

    /// For the driver: the peer sends nothing more, so there will be no more answers.
    pub(crate) fn no_more_answers(&self) {
        self.calls().close(&self.why(&Outcome::Closed));
    }

    /// What calls are told that will not be answered.
    fn why(&self, outcome: &Outcome) -> String {
        let reason = match outcome {
            Outcome::Closed if self.is_closing() => return "the session was closed".to_owned(),
            Outcome::Closed => "the peer closed the connection",
            Outcome::Failed(reason) => reason,
        };
        match self.noise() {
            Some(noise) => format!("{reason}; the first line that was no message: {noise:?}"),
            None => reason.to_owned(),
        }
    }

    /// For the driver: nothing can be sent or received any more. Fails what waits, and stops what runs.
    pub(crate) fn cut(self: &Arc<Self>, outcome: Outcome) {
        let reason = self.why(&outcome);
        // Only the first outcome counts.
        let _ = self.outcome.set(outcome);
        self.in_flight().drain();
        self.in_flight().cancel_all();
        self.calls().close(&reason);
        self.outbox.close();
    }

    /// For the driver: the transport is closed too.
    pub(crate) fn finished(self: &Arc<Self>) {
        self.ended.set();
        self.role.closed(self);
    }

    /// Remembers a line from the peer that was no message, if it is the first.
    pub(crate) fn heard_noise(&self, bytes: &[u8]) {
        let shown = bytes.get(..KEPT_NOISE).unwrap_or(bytes);
        let mut noise = self.noise.lock().unwrap_or_else(PoisonError::into_inner);
        noise.get_or_insert_with(|| String::from_utf8_lossy(shown).into_owned());
    }

    /// The first line from the peer that was no message.
    fn noise(&self) -> Option<String> {
        self.noise
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Sends a notification that `write` serializes.
    pub(crate) fn notify_raw(
        &self,
        write: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>,
    ) -> Result<()> {
        match self.outbox.append(write) {
            None => Err(Error::closed("the session has ended")),
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(not_json(error)),
        }
    }
}

/// Keeps a connection from taking anything more; made by [`Connection::hold`].
#[derive(Debug)]
pub(crate) struct Hold(Arc<Connection>);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.held.store(false, Ordering::Relaxed);
        self.0.outbox.call_attention();
    }
}

/// What a caller is told whose params cannot be sent.
pub(crate) fn not_json(error: serde_json::Error) -> Error {
    Error::misuse(format!("the params are no JSON: {error}")).with_source(error)
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("side", &self.role.side())
            .field("unsent", &self.outbox.unsent())
            .field("closing", &self.is_closing())
            .field("ended", &self.is_ended())
            .finish_non_exhaustive()
    }
}
