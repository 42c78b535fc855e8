//! A session that other nodes know: how it is kept in step with them.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use futures_core::future::BoxFuture;
use http::{Response, request::Parts};
use oxmcp_protocol::{
    RequestId,
    internal::{Envelope, RequestParams},
};
use tokio::{task::JoinHandle, time::sleep};

use super::{
    follower::Follower,
    forward::Forwarder,
    get_log::GetLog,
    leased::RETRY,
    persistence::{Persistence, SessionSettings, kept_for, touch_interval},
    records::Record,
    relay::{self, Relay, answered_question, is_awaited},
    replay::take_over,
    request_log::RequestLog,
    session_bus::{
        BusListener, Confirmations, Undelivered, tell_answered, tell_changed, tell_over,
    },
};
use crate::{
    http::server::{
        caller::lasting_caller,
        endpoint::StreamableHttp,
        response::ResponseBody,
        sessions::{
            FollowedStream, Purpose, Session, SharedSession, StreamKey, StreamLog, StreamWriter,
            WeakEndpoint,
        },
    },
    session::{connection::Caller, task::spawn},
    transport::traits::Frame,
};

/// The delay between telling other nodes that a session has ended and responding to its client. Messages take a few milliseconds,
/// and the client's next request could reach a node before the message.
const HEARD: Duration = Duration::from_millis(50);

/// A session whose record is in a store.
pub(crate) struct ClusterSession {
    session: Weak<Session>,
    id: Arc<str>,
    endpoint: WeakEndpoint,
    record: Persistence,
    /// Forwards messages outside requests to the node that sends them, if nodes share the events of streams.
    forwarder: Option<Arc<Forwarder>>,
    /// Client messages that other nodes are waiting for.
    undelivered: Arc<Undelivered>,
    /// The answers among them that other nodes may already have.
    confirmations: Arc<Confirmations>,
}

impl ClusterSession {
    pub(crate) fn new(
        endpoint: &StreamableHttp,
        session: &Arc<Session>,
        record: Persistence,
        forwarder: Option<Arc<Forwarder>>,
    ) -> Self {
        Self {
            session: Arc::downgrade(session),
            id: Arc::clone(session.id()),
            endpoint: WeakEndpoint::of(endpoint),
            record,
            forwarder,
            undelivered: Arc::new(Undelivered::of_session()),
            confirmations: Arc::default(),
        }
    }

    /// Saves the changed settings of the session. Returns false if the store failed.
    async fn save_once(&self, session: &Session, change: u64) -> bool {
        let settings = || SessionSettings::now(session);
        let (version, is_saved) = self.record.save(&self.id, change, settings).await;
        if let Some(version) = version {
            tell_changed(self.endpoint.settings().bus.as_ref(), &self.id, version).await;
        }
        is_saved
    }

    /// Touches the record, applies settings from other nodes on behalf of the caller of a request, and ends the session if it is
    /// over.
    async fn touch(&self, parts: &Parts) {
        let (Some(endpoint), Some(session)) = (self.endpoint.upgrade(), self.session.upgrade())
        else {
            return;
        };
        let lasts = kept_for(&self.endpoint.settings().limits);
        let budget = &endpoint.state.budget;
        self.record
            .touch(&self.id, lasts, |settings| {
                take_over(&session, &lasting_caller(parts, budget), settings);
                SessionSettings::now(&session)
            })
            .await;
        if self.record.is_over() {
            self.on_over();
        }
    }

    /// The relay of messages that other nodes may need.
    fn to_relay(&self) -> Option<Relay> {
        self.forwarder.as_ref()?;
        Some(Relay {
            endpoint: self.endpoint.upgrade()?,
            session: self.session.upgrade()?,
            undelivered: Arc::clone(&self.undelivered),
            confirmations: Arc::clone(&self.confirmations),
        })
    }
}

impl SharedSession for ClusterSession {
    fn keep(self: Arc<Self>, parts: &Arc<Parts>) -> Option<JoinHandle<()>> {
        let is_doubtful = self.record.is_doubtful();
        if !self
            .record
            .is_due(touch_interval(&self.endpoint.settings().limits))
            && !is_doubtful
        {
            return None;
        }
        let parts = Arc::clone(parts);
        let kept = spawn(async move { self.touch(&parts).await });
        is_doubtful.then_some(kept)
    }

    /// In its own task, because the client that changed the settings may disconnect. If the store fails, another task retries until
    /// it works.
    fn save(self: Arc<Self>) -> JoinHandle<()> {
        let change = self.record.changed();
        let session = self.session.upgrade();
        spawn(async move {
            let Some(session) = session else {
                return;
            };
            if self.save_once(&session, change).await {
                return;
            }
            drop(session);
            spawn(async move {
                sleep(RETRY).await;
                let session = || self.session.upgrade();
                while let Some(session) = session().filter(|it| !it.connection().is_cut())
                    && !self.save_once(&session, change).await
                {
                    drop(session);
                    sleep(RETRY).await;
                }
            });
        })
    }

    fn renewal(self: Arc<Self>, interval: Duration) -> Option<BoxFuture<'static, ()>> {
        self.record.is_due(interval).then_some(())?;
        Some(Box::pin(async move {
            let Some(_session) = self.session.upgrade() else {
                return;
            };
            let lasts = kept_for(&self.endpoint.settings().limits);
            self.record.renew(&self.id, lasts).await;
            if self.record.is_over() {
                self.on_over();
            }
        }))
    }

    fn is_over(&self) -> bool {
        self.record.is_over()
    }

    fn remove(&self, by_client: bool) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let is_told = self.record.remove(&self.id).await
                && tell_over(self.endpoint.settings().bus.as_ref(), &self.id).await;
            if is_told && by_client {
                sleep(HEARD).await;
            }
        })
    }

    fn unsubscribe(&self) {
        if let Some(endpoint) = self.endpoint.upgrade() {
            endpoint.state.session_bus.unsubscribe(&self.id);
        }
    }

    fn relay(
        &self,
        message: &Envelope<'_, RequestParams<'_>>,
        text: &[u8],
    ) -> Option<BoxFuture<'static, Response<ResponseBody>>> {
        relay::relay(self.to_relay()?, message, text)
    }

    fn relay_batch(&self, body: &[u8]) -> Option<BoxFuture<'static, ()>> {
        relay::relay_batch(self.to_relay()?, body)
    }

    fn opening(&self, id: Option<&RequestId>, batch: Option<&[u8]>) -> Option<Vec<u8>> {
        self.forwarder.as_ref()?;
        Some(Record::of_posted(id, batch)?.line())
    }

    fn log(
        &self,
        key: StreamKey,
        has_empty: bool,
        purpose: Purpose,
        opening: Option<Vec<u8>>,
    ) -> Box<dyn StreamLog> {
        match (purpose, opening, &self.forwarder) {
            (Purpose::Request, Some(opening), _) => {
                Box::new(RequestLog::new(key, has_empty, opening))
            }
            (Purpose::GetStream, _, Some(forwarder)) => {
                Box::new(GetLog::new(key, has_empty, forwarder))
            }
            _ => Box::new(StreamWriter::new(key, has_empty)),
        }
    }

    fn follow(&self, key: StreamKey, has_empty: bool, seen: u64) -> Box<dyn FollowedStream> {
        Box::new(Follower::new(key, has_empty, seen))
    }
}

impl BusListener for ClusterSession {
    fn on_over(&self) {
        self.record.note_over();
        if let Some(session) = self.session.upgrade() {
            session.begin_close();
            if let Some(endpoint) = self.endpoint.upgrade() {
                endpoint.state.sessions.remove(&session);
            }
        }
    }

    fn on_changed(&self, version: u64) {
        self.record.note_version(version);
    }

    /// Handles the message if it concerns a request or a question of this node.
    fn on_posted(&self, text: &str) {
        let Some(session) = self.session.upgrade() else {
            return;
        };
        let mut params = RequestParams::unread();
        let message = Envelope::parse_str(text, &mut params);
        let Some(message) = message.ok().filter(|it| is_awaited(&session, it)) else {
            return;
        };
        let question = answered_question(&message);
        let branch = session.branch(Caller::default());
        branch.take(Frame::Message(text.as_bytes()));
        if let Some(question) = question {
            let bus = self.endpoint.settings().bus.clone();
            let id = Arc::clone(&self.id);
            spawn(async move { tell_answered(bus.as_ref(), &id, question).await });
        }
    }

    fn on_answered(&self, question: i64) {
        self.confirmations.confirm(question);
    }

    fn on_gap(&self) {
        self.record.note_doubt();
    }
}
