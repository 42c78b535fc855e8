//! The messages that nodes exchange about shared sessions, and how they are handled.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use futures_util::future::join_all;
use http::request::Parts;
use oxmcp_protocol::internal::{Envelope, RequestParams};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::{
    task::{JoinError, JoinHandle},
    time::sleep,
};

use super::{
    super::{
        lifecycle::WeakEndpoint,
        persistence::{Persistence, UNUSED, kept_for, touch_interval},
        quota::QuotaExceeded,
        restore::take_over,
        session::Session,
        stream_writer::{RETRY, StreamKey},
        streams::GET_STREAM,
    },
    forward::Forwarder,
    questions::look_for_answers,
    relay::{answered_question, is_awaited},
};
use crate::{
    error::{Error, Result},
    http::server::{
        caller::lasting_caller,
        endpoint::StreamableHttp,
        response::{self, Refused},
    },
    session::{connection::Caller, task::spawn},
    store::{AnySessionStore, Creation, Delivery, SessionRecord, StoredSession, hashed, listen},
    transport::traits::Frame,
};

/// The topic of messages about sessions.
const TOPIC: &str = "sessions";
/// The delay between telling other nodes that a session has ended and responding to its client. Messages take a few milliseconds,
/// and the client's next request could reach a node before the message.
const HEARD: Duration = Duration::from_millis(50);
/// The number of records that are renewed concurrently.
const RENEWED_AT_ONCE: usize = 32;

/// A message to the other nodes about a session, identified by the hash of its ID.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum SessionMessage {
    Over {
        session: String,
    },
    Changed {
        session: String,
        version: u64,
    },
    /// A client message that concerns a request or a question of another node.
    Posted {
        session: String,
        message: Box<RawValue>,
    },
    /// The answer to the question with this ID has reached the node that asked.
    Answered {
        session: String,
        id: i64,
    },
}

impl StreamableHttp {
    /// Creates the record of a new session in a store, for other nodes. If there are too many sessions, removes the records of
    /// sessions that were evicted for it on this node, or else evicts the oldest unused session. Unused sessions of other nodes
    /// expire soon.
    ///
    /// # Errors
    /// The response that refuses the request, if there are still too many sessions, or the store fails: other nodes would not know
    /// a session without a record.
    pub(crate) async fn create_record(
        &self,
        session: &Session,
        store: &Arc<dyn AnySessionStore>,
        record: SessionRecord,
        mut evicted: Vec<Arc<Session>>,
    ) -> Result<Option<Persistence>, Refused> {
        let max_per_owner = self.settings.limits.http.max_sessions_each;
        let create = || {
            let (store, id, record) = (Arc::clone(store), Arc::clone(session.id()), record.clone());
            // The task fails if the store panics.
            spawn(async move { store.create(&id, record, UNUSED, max_per_owner).await })
        };
        let mut created = create().await;
        if let Some(exceeded) = exceeded(&created) {
            if evicted.is_empty() {
                evicted.extend(self.state.sessions.evict(exceeded, session.principal()));
            }
            for evicted in &evicted {
                self.remove_record(evicted).await;
            }
            if !evicted.is_empty() {
                created = create().await;
            }
        }
        if let Some(exceeded) = exceeded(&created) {
            let (status, why) = exceeded.why(&self.settings.limits);
            return Err(response::refuse(status, None, &Error::internal(why)));
        }
        let error = match created {
            Ok(Ok(Creation::Created)) => {
                let stored = StoredSession::new(record, 1);
                return Ok(Some(Persistence::new(Arc::clone(store), stored)));
            }
            Ok(Ok(_)) => {
                tracing::warn!("session ID already in use; session is local to this node");
                return Ok(None);
            }
            Ok(Err(error)) => error,
            Err(_) => Error::internal("the session store panicked"),
        };
        tracing::warn!(%error, "could not store a new session; rejecting it");
        let why =
            Error::internal("could not open a session: the session store failed; try again later");
        Err(response::unserved(None, &why))
    }

    /// Shares a session with other nodes from now on.
    pub(crate) fn share(&self, session: &Arc<Session>) {
        if self.settings.bus.is_some() {
            self.state.sessions.index(session);
            self.listen_for_news();
        }
        let Some(store) = &self.settings.events else {
            return;
        };
        let get_stream = StreamKey {
            store: Arc::clone(store),
            session: Arc::clone(session.id()),
            stream: GET_STREAM.into(),
        };
        let forwarder = Forwarder::new(session.connection(), get_stream);
        if session.forward_by(Arc::clone(&forwarder)) {
            look_for_answers(session, store);
            forwarder.begin();
        }
    }

    /// Saves the changed settings of a session and notifies other nodes, in its own task, because the client that changed them may
    /// disconnect. If the store fails, another task retries until it works.
    pub(crate) fn save(&self, session: &Arc<Session>) -> Option<JoinHandle<()>> {
        let change = session.persistence()?.changed();
        let (session, endpoint) = (Arc::clone(session), self.clone());
        Some(spawn(async move {
            if endpoint.save_once(&session, change).await {
                return;
            }
            let session = Arc::downgrade(&session);
            spawn(async move {
                sleep(RETRY).await;
                while let Some(session) = session.upgrade().filter(|it| !it.connection().is_cut())
                    && !endpoint.save_once(&session, change).await
                {
                    drop(session);
                    sleep(RETRY).await;
                }
            });
        }))
    }

    /// Saves the changed settings of a session. Returns false if the store failed.
    async fn save_once(&self, session: &Session, change: u64) -> bool {
        let Some(persistence) = session.persistence() else {
            return true;
        };
        let settings = || session.settings();
        let (version, is_saved) = persistence.save(session.id(), change, settings).await;
        if let Some(version) = version {
            let session = hashed(session.id());
            self.tell(&SessionMessage::Changed { session, version })
                .await;
        }
        is_saved
    }

    /// Removes the record of a session that its client ends, and gives other nodes time to receive the message about it.
    pub(crate) async fn end_record(&self, session: &Session) {
        if self.remove_record(session).await {
            sleep(HEARD).await;
        }
    }

    /// Removes the record of a session that is over, and notifies other nodes. Returns whether they were notified.
    pub(crate) async fn remove_record(&self, session: &Session) -> bool {
        let Some(persistence) = session.persistence() else {
            return false;
        };
        let over = SessionMessage::Over {
            session: hashed(session.id()),
        };
        persistence.remove(session.id()).await && self.tell(&over).await
    }

    /// Publishes a message to other nodes. Returns whether that succeeded.
    async fn tell(&self, news: &SessionMessage) -> bool {
        let (Some(bus), Ok(news)) = (&self.settings.bus, serde_json::to_vec(news)) else {
            return false;
        };
        let published = bus.publish(TOPIC, news.into()).await;
        published
            .inspect_err(|error| tracing::warn!(%error, "bus failed; other nodes are not notified"))
            .is_ok()
    }

    /// Sends other nodes a message that may concern one of their requests or questions.
    ///
    /// # Errors
    /// If it is unknown whether they receive it.
    pub(crate) async fn tell_message(&self, session: &Session, text: &str) -> Result<()> {
        let message = RawValue::from_string(text.to_owned());
        let (Some(bus), Ok(message)) = (&self.settings.bus, message) else {
            return Ok(());
        };
        let session = hashed(session.id());
        match serde_json::to_vec(&SessionMessage::Posted { session, message }) {
            Ok(news) => bus.publish(TOPIC, news.into()).await,
            Err(_) => Ok(()),
        }
    }

    /// Listens for messages of other nodes about sessions, as long as the endpoint exists.
    fn listen_for_news(&self) {
        let Some(bus) = self.settings.bus.clone() else {
            return;
        };
        let weak = WeakEndpoint::of(self);
        self.state.sessions.ensure_listener(|| {
            let upgrade = move || weak.upgrade();
            listen(bus, TOPIC, upgrade, Self::take_delivery)
        });
    }

    fn take_delivery(&self, delivery: &Delivery) {
        let Delivery::Message { message, .. } = delivery else {
            return self.doubt_all();
        };
        let sessions = &self.state.sessions;
        match serde_json::from_slice(message) {
            Ok(SessionMessage::Over { session }) => {
                if let Some(session) = sessions.find_hashed(&session) {
                    self.end_known(&session);
                }
            }
            Ok(SessionMessage::Changed { session, version }) => {
                if let Some(session) = sessions.find_hashed(&session)
                    && let Some(persistence) = session.persistence()
                {
                    persistence.note_version(version);
                }
            }
            Ok(SessionMessage::Posted { session, message }) => {
                if let Some(found) = sessions.find_hashed(&session)
                    && let Some(id) = take_message(&found, message.get())
                {
                    let endpoint = self.clone();
                    spawn(async move {
                        let answered = SessionMessage::Answered { session, id };
                        endpoint.tell(&answered).await;
                    });
                }
            }
            Ok(SessionMessage::Answered { session, id }) => {
                if let Some(session) = sessions.find_hashed(&session) {
                    session.confirmations.confirm(id);
                }
            }
            Err(_) => tracing::warn!("ignoring an unreadable message from another node"),
        }
    }

    /// Ends a session that other nodes have reported as over.
    fn end_known(&self, session: &Arc<Session>) {
        if let Some(persistence) = session.persistence() {
            persistence.note_over();
        }
        session.begin_close();
        self.state.sessions.remove(session);
    }

    /// Handles a possible loss of messages: checks all sessions now, and each again before its next request.
    fn doubt_all(&self) {
        let mut doubtful = Vec::new();
        self.state.sessions.for_each(|session| {
            if let Some(persistence) = session.persistence() {
                persistence.note_doubt();
                doubtful.push(Arc::downgrade(session));
            }
        });
        self.renew(doubtful);
    }

    /// Renews the records of sessions in the background, and ends the sessions that are over.
    pub(crate) fn renew(&self, sessions: Vec<Weak<Session>>) {
        if sessions.is_empty() {
            return;
        }
        let endpoint = self.clone();
        spawn(async move {
            for some in sessions.chunks(RENEWED_AT_ONCE) {
                let some = some.iter().filter_map(Weak::upgrade);
                join_all(some.map(|session| endpoint.renew_one(session))).await;
            }
        });
    }

    async fn renew_one(&self, session: Arc<Session>) {
        if let Some(persistence) = session.persistence() {
            let lasts = kept_for(&self.settings.limits);
            persistence.renew(session.id(), lasts).await;
            if persistence.is_over() {
                self.end_known(&session);
            }
        }
    }

    /// Keeps the record of a session in use, in the background. Returns the task if a request must wait for it, because other nodes
    /// may have ended the session.
    pub(crate) fn keep(
        &self,
        session: &Arc<Session>,
        parts: &Arc<Parts>,
    ) -> Option<JoinHandle<()>> {
        let persistence = session.persistence()?;
        let is_doubtful = persistence.is_doubtful();
        if !persistence.is_due(touch_interval(&self.settings.limits)) && !is_doubtful {
            return None;
        }
        let (endpoint, session) = (self.clone(), Arc::clone(session));
        let parts = Arc::clone(parts);
        let kept = spawn(async move { endpoint.touch(&session, &parts).await });
        is_doubtful.then_some(kept)
    }

    /// Touches the record of a session, applies settings from other nodes on behalf of the caller of a request, and ends the
    /// session if it is over.
    async fn touch(&self, session: &Arc<Session>, parts: &Parts) {
        let Some(persistence) = session.persistence() else {
            return;
        };
        let lasts = kept_for(&self.settings.limits);
        let budget = &self.state.budget;
        persistence
            .touch(session.id(), lasts, |settings| {
                take_over(session, &lasting_caller(parts, budget), settings);
                session.settings()
            })
            .await;
        if persistence.is_over() {
            self.end_known(session);
        }
    }
}

/// The limit that a store reported as exceeded.
fn exceeded(created: &Result<Result<Creation>, JoinError>) -> Option<QuotaExceeded> {
    match created {
        Ok(Ok(Creation::PrincipalFull)) => Some(QuotaExceeded::Principal),
        Ok(Ok(Creation::Full)) => Some(QuotaExceeded::Nodes),
        _ => None,
    }
}

/// Handles a message that another node has received, if it concerns a request or a question of this node. Returns the ID of the
/// question that it answers.
fn take_message(session: &Session, text: &str) -> Option<i64> {
    let mut params = RequestParams::unread();
    let message = Envelope::parse_str(text, &mut params).ok()?;
    if !is_awaited(session, &message) {
        return None;
    }
    let question = answered_question(&message);
    let branch = session.branch(Caller::default());
    branch.take(Frame::Message(text.as_bytes()));
    question
}
