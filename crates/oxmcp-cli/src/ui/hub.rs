//! The sessions of the page, and the work that it has asked for.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::future::join_all;
use oxmcp::CancellationToken;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::{self, AbortHandle};

use crate::{
    args::Connection,
    failure::Failure,
    session,
    terminal::Terminal,
    ui::{
        catalog::{Listed, Obstacle},
        connect::{Connected, Connector},
        events::Events,
        operation::{Operation, Trouble, Work},
        questions::Questions,
        views::Views,
    },
};

/// The operations of a server that run at once.
const MAX_JOBS: usize = 64;

/// The bytes of the name of an operation.
const MAX_NAME: usize = 64;

/// Everything that the page shows.
pub(crate) struct Hub {
    pub events: Arc<Events>,
    pub questions: Arc<Questions>,
    pub views: Arc<Views>,
    connector: Connector,
    servers: Vec<Entry>,
    jobs: Mutex<BTreeMap<String, Job>>,
}

/// An operation that runs.
struct Job {
    server: usize,
    stop: CancellationToken,
}

struct Entry {
    listed: Listed,
    state: Mutex<State>,
    /// The text of the command line or URL that the user has confirmed.
    confirmed: Mutex<Option<String>>,
}

enum State {
    Idle,
    Connecting(AbortHandle),
    Connected(Arc<Connected>),
    Failed(String),
}

/// A request of the page to connect.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Connect {
    pub server: usize,
    #[serde(default)]
    pub revision: Option<String>,
    /// The text of the command line or URL that the user has confirmed.
    #[serde(default)]
    pub command: Option<String>,
    #[serde(default)]
    pub inputs: BTreeMap<String, String>,
}

impl Hub {
    pub(crate) fn new(
        servers: Vec<Listed>,
        options: Connection,
        terminal: Terminal,
        sandbox: String,
    ) -> Arc<Self> {
        let events = Arc::new(Events::new());
        let questions = Arc::new(Questions::new(Arc::clone(&events)));
        let servers = servers.into_iter().map(|listed| Entry {
            listed,
            state: Mutex::new(State::Idle),
            confirmed: Mutex::default(),
        });
        Arc::new(Self {
            connector: Connector {
                events: Arc::clone(&events),
                questions: Arc::clone(&questions),
                options,
                terminal,
            },
            questions,
            views: Arc::new(Views::new(Arc::clone(&events), sandbox)),
            events,
            servers: servers.collect(),
            jobs: Mutex::default(),
        })
    }

    /// The servers and their states, for a page that was just opened.
    pub(crate) fn servers(&self) -> Vec<Value> {
        let shown = self.servers.iter().map(|it| {
            let state = lock(&it.state).shown();
            json!({"listed": it.listed, "state": state})
        });
        shown.collect()
    }

    /// The names of the operations that run.
    pub(crate) fn jobs(&self) -> Vec<String> {
        lock(&self.jobs).keys().cloned().collect()
    }

    /// Begins to connect.
    ///
    /// # Errors
    /// The user must be asked first, or the server is not known, or its configuration has mistakes.
    pub(crate) fn connect(self: &Arc<Self>, asked: Connect) -> Result<(), Obstacle> {
        let failed = |reason: &str| Obstacle::Failed(reason.to_owned());
        let id = asked.server;
        let entry = self
            .servers
            .get(id)
            .ok_or_else(|| failed("unknown server"))?;
        let mut state = lock(&entry.state);
        // Another page, or another click, has connected it.
        if matches!(*state, State::Connecting(_) | State::Connected(_)) {
            return Ok(());
        }
        let confirmed = asked.command.or_else(|| lock(&entry.confirmed).clone());
        let server =
            entry
                .listed
                .server(confirmed.as_deref(), asked.inputs, &self.connector.terminal)?;
        *lock(&entry.confirmed) = confirmed;
        let hub = Arc::clone(self);
        let connecting = tokio::spawn(Box::pin(async move {
            let revision = asked.revision.as_deref();
            let outcome = hub.connector.connect(id, &server, revision).await;
            hub.connected(id, outcome.map(Arc::new)).await;
        }));
        *state = State::Connecting(connecting.abort_handle());
        self.events.push("server", Some(id), state.shown());
        Ok(())
    }

    /// Ends the attempt to connect whose task this is, unless the user has stopped it meanwhile.
    async fn connected(&self, id: usize, outcome: Result<Arc<Connected>, Failure>) {
        let state = match &outcome {
            Ok(connected) => State::Connected(Arc::clone(connected)),
            Err(failure) => State::Failed(failure.to_string()),
        };
        let is_wanted = |it: &State| matches!(it, State::Connecting(it) if it.id() == task::id());
        let is_set = self.set(id, state, is_wanted).is_some();
        let Ok(connected) = outcome else { return };
        if !is_set {
            session::close(&connected.session).await;
            return;
        }
        let reason = match connected.session.wait().await {
            Ok(()) => "the server has ended the session".to_owned(),
            Err(error) => error.message().to_owned(),
        };
        let is_current =
            |it: &State| matches!(it, State::Connected(it) if Arc::ptr_eq(it, &connected));
        self.set(id, State::Failed(reason), is_current);
    }

    /// Disconnects, or stops connecting.
    pub(crate) async fn disconnect(&self, id: usize) {
        match self.set(id, State::Idle, |_| true) {
            Some(State::Connecting(connecting)) => connecting.abort(),
            Some(State::Connected(connected)) => session::close(&connected.session).await,
            Some(State::Idle | State::Failed(_)) | None => {}
        }
    }

    /// Ends all sessions.
    pub(crate) async fn close(&self) {
        join_all((0..self.servers.len()).map(|id| self.disconnect(id))).await;
    }

    /// Begins an operation. Its result is an event.
    ///
    /// # Errors
    /// The server is not connected, or too many operations run.
    pub(crate) fn run(
        self: &Arc<Self>,
        id: usize,
        job: String,
        operation: Operation,
    ) -> Result<(), String> {
        let connected = self.servers.get(id).and_then(|it| match &*lock(&it.state) {
            State::Connected(it) => Some(Arc::clone(it)),
            _ => None,
        });
        let connected = connected.ok_or("the server is not connected")?;
        if job.is_empty() || job.len() > MAX_NAME {
            return Err("the name of the operation is too long".to_owned());
        }
        let stop = CancellationToken::new();
        {
            let mut jobs = lock(&self.jobs);
            if jobs.contains_key(&job) {
                return Err("the operation is running already".to_owned());
            }
            if jobs.values().filter(|it| it.server == id).count() >= MAX_JOBS {
                return Err(format!(
                    "{MAX_JOBS} operations are running; cancel one first"
                ));
            }
            let stop = stop.clone();
            jobs.insert(job.clone(), Job { server: id, stop });
        }
        let started = json!({"job": job, "phase": "started", "operation": operation});
        self.events.push("job", Some(id), started);
        let hub = Arc::clone(self);
        tokio::spawn(Box::pin(async move {
            let begun = hub.events.elapsed();
            let work = Work {
                events: &hub.events,
                views: &hub.views,
                server: id,
                job: &job,
                connected: &connected,
                stop: &stop,
            };
            let outcome = Box::pin(work.run(operation)).await;
            let took = hub.events.elapsed().saturating_sub(begun);
            let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
            let ended = match outcome {
                Ok(result) => {
                    json!({"job": job, "phase": "done", "micros": micros, "result": result})
                }
                Err(trouble) => trouble.shown(&job, micros),
            };
            hub.events.push("job", Some(id), ended);
            lock(&hub.jobs).remove(&job);
        }));
        Ok(())
    }

    /// Cancels an operation.
    pub(crate) fn cancel(&self, job: &str) {
        if let Some(job) = lock(&self.jobs).get(job) {
            job.stop.cancel();
        }
    }

    /// Changes the state of a server if the last one is expected, and returns that.
    fn set(
        &self,
        id: usize,
        state: State,
        is_expected: impl FnOnce(&State) -> bool,
    ) -> Option<State> {
        let mut current = lock(&self.servers.get(id)?.state);
        if !is_expected(&current) {
            return None;
        }
        let is_over = !matches!(state, State::Connected(_) | State::Connecting(_));
        // The lock keeps the events in the order of the states.
        self.events.push("server", Some(id), state.shown());
        let old = std::mem::replace(&mut *current, state);
        drop(current);
        if let (true, State::Connected(connected)) = (is_over, &old) {
            connected.end_watches();
            self.views.close_all(id);
        }
        Some(old)
    }
}

impl State {
    fn shown(&self) -> Value {
        match self {
            Self::Idle => json!({"state": "idle"}),
            Self::Connecting(_) => json!({"state": "connecting"}),
            Self::Connected(it) => json!({"state": "connected", "facts": it.facts}),
            Self::Failed(reason) => json!({"state": "failed", "reason": reason}),
        }
    }
}

impl Trouble {
    fn shown(&self, job: &str, micros: u64) -> Value {
        json!({
            "job": job,
            "phase": "failed",
            "micros": micros,
            "error": {
                "message": self.message,
                "code": self.code,
                "data": self.data,
                "isCancelled": self.is_cancelled,
            },
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
