//! What a session hears: from which level on, and how often.

use std::{
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde_json::json;
use tokio::time::Instant;

use super::LogOptions;
use crate::{
    protocol::{LoggingLevel, LoggingMessageParams},
    server::ServerSession,
    session::{RequestContext, after},
};

/// What a session hears. It costs nothing until somebody logs.
#[derive(Debug, Default)]
pub(crate) struct LogGate(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// What the client has asked for with `logging/setLevel`.
    level: Option<LoggingLevel>,
    /// When the session would have heard all messages so far at the steady rate. Where that is too far ahead, a message
    /// is dropped: it is a token bucket that needs no timer.
    paid_until: Option<Instant>,
    dropped: u64,
}

impl LogGate {
    pub(super) fn set_level(&self, level: LoggingLevel) {
        self.lock().level = Some(level);
    }

    pub(crate) fn level(&self) -> Option<LoggingLevel> {
        self.lock().level
    }

    /// Lets one message pass, or counts it as dropped. Returns how many were dropped since the last that has passed.
    pub(super) fn admit(&self, options: LogOptions) -> Option<u64> {
        let mut state = self.lock();
        if options.burst == 0 {
            return Some(mem::take(&mut state.dropped));
        }
        let now = Instant::now();
        let paid_until = state.paid_until.map_or(now, |until| until.max(now));
        let ahead = paid_until.duration_since(now);
        if ahead > options.interval() * (options.burst - 1) {
            state.dropped += 1;
            return None;
        }
        state.paid_until = Some(after(paid_until, options.interval()));
        Some(mem::take(&mut state.dropped))
    }

    /// Counts messages that were dropped for another reason.
    #[cfg(feature = "tracing-subscriber")]
    pub(super) fn drop(&self, messages: u64) {
        self.lock().dropped += messages;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the messages of a request go, and from which level on.
///
/// Nothing here may be an event of [`tracing`]: the layer uses it while other layers have not seen the event that it is about,
/// and an event within another makes them forget which of both their filters let pass.
pub(super) struct Audience {
    session: ServerSession,
    options: LogOptions,
    from: LoggingLevel,
}

impl Audience {
    /// Who hears what is logged for a request. `None` where nobody hears anything.
    pub(super) fn of(cx: &RequestContext) -> Option<Self> {
        let session = cx.server_session()?;
        if !cx.revision().is_modern() {
            return Self::of_session(session);
        }
        Some(Self {
            options: declared(&session)?,
            from: cx.parts().log_level?,
            session,
        })
    }

    /// Who hears what is logged for the session that `initialize` opened. `None` where the server does not log.
    pub(super) fn of_session(session: ServerSession) -> Option<Self> {
        let options = declared(&session)?;
        let asked = session.peer().log_gate().level();
        Some(Self {
            options,
            from: asked.unwrap_or(options.default_level),
            session,
        })
    }

    pub(super) fn hears(&self, level: LoggingLevel) -> bool {
        level >= self.from
    }

    /// Lets one message pass, or counts it as dropped. Returns how many were dropped since the last that has passed.
    pub(super) fn admit(&self) -> Option<u64> {
        self.gate().admit(self.options)
    }

    /// Counts messages as dropped.
    #[cfg(feature = "tracing-subscriber")]
    pub(super) fn drop(&self, messages: u64) {
        self.gate().drop(messages);
    }

    /// What is said before a message, where others were dropped.
    pub(super) fn notice(&self, dropped: u64) -> Option<LoggingMessageParams> {
        if dropped == 0 {
            return None;
        }
        let data = json!({"msg": "log messages were dropped, because there were too many", "dropped": dropped});
        self.hears(LoggingLevel::Warning).then(|| {
            LoggingMessageParams::new(LoggingLevel::Warning, &data)
                .expect("a JSON value is always JSON")
        })
    }

    fn gate(&self) -> &LogGate {
        self.session.peer().log_gate()
    }
}

/// How the server logs, if it has declared that it does.
fn declared(session: &ServerSession) -> Option<LogOptions> {
    session.server().features().logging
}
