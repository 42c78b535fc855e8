//! GET, by which a session's client gets its stream or the rest of another, and DELETE, by which it ends the session.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http::{Response, StatusCode};

use crate::{
    Error,
    http::{
        names::LAST_EVENT_ID,
        server::{
            ResponseBody, answer, kept,
            ladder::Refusal,
            legacy::no_session,
            pump::replayed,
            respond::{Asked, only},
            streams::{self, Opening, Purpose, REPLAYED, purpose},
        },
    },
    store::{AnyEventStore, EventId, Replay},
};

/// Opens the stream of a session, or resumes one.
pub(super) async fn get(asked: Asked) -> Response<ResponseBody> {
    if let Err(refusal) = asked.has_sessions() {
        return refusal.response(None);
    }
    if !asked.names_session {
        return Refusal::no_stream().response(None);
    }
    let Asked {
        endpoint,
        session,
        parts,
        ..
    } = asked;
    let Some(session) = session else {
        return no_session(None);
    };
    let limit = endpoint.settings.limits.max_http_streams;
    let Some(counted) = endpoint.state.streams.enter_below(limit) else {
        let why = Error::internal(format!(
            "there are {limit} streams, which is the limit; try another time"
        ));
        return answer::refuse(StatusCode::SERVICE_UNAVAILABLE, None, &why);
    };
    let connection = Arc::clone(session.connection());
    let store = endpoint.settings.events.clone();
    let mut opening = Opening {
        purpose: Purpose::Standing,
        resumed: None,
        taken: Vec::new(),
        reply: None,
        counted: Some(counted),
        saves: false,
    };
    if parts.headers.contains_key(LAST_EVENT_ID) {
        let seen = only(&parts, &LAST_EVENT_ID).and_then(EventId::parse);
        let (Some(seen), Some(store)) = (seen, &store) else {
            return lost();
        };
        let rest = Rest {
            store: Arc::clone(store),
            session: session.id().into(),
            stream: seen.stream().into(),
            seen: seen.index(),
        };
        let Some(events) = rest.fetch().await else {
            return lost();
        };
        let counted = &mut opening.counted;
        let streams = &session.streams;
        if let Some(response) = streams.resume(&rest.stream, rest.seen, counted) {
            return response;
        }
        if purpose(&rest.stream) == Purpose::Request || session.streams.is_standing() {
            return rest.respond(events);
        }
        opening.resumed = Some((rest.stream, rest.seen));
    }
    streams::begin(&session, connection, store, opening).unwrap_or_else(|| {
        let why = Error::invalid_request(
            "the session has this stream already, and it is being read; there is one for each session",
        );
        answer::refuse(StatusCode::CONFLICT, None, &why)
    })
}

/// Ends a session.
pub(super) async fn delete(asked: Asked) -> Response<ResponseBody> {
    if let Err(refusal) = asked.has_sessions() {
        return refusal.response(None);
    }
    if !asked.names_session {
        let why = Error::invalid_request("DELETE ends the session that Mcp-Session-Id names");
        return answer::refuse(StatusCode::BAD_REQUEST, None, &why);
    }
    let Some(session) = asked.session else {
        return no_session(None);
    };
    session.begin_close();
    // Nobody finds it from here on, though what runs may finish.
    kept::remove(&session).await;
    asked.endpoint.state.sessions.remove(&session);
    answer::empty(StatusCode::NO_CONTENT)
}

/// What a client is told that wants events which are not there any more, or never were.
fn lost() -> Response<ResponseBody> {
    let why = Error::invalid_request(
        "Last-Event-ID names no event of this session that can be gone on from; send GET without it",
    );
    answer::refuse(StatusCode::BAD_REQUEST, None, &why)
}

/// The rest of a stream that nobody sends on any more.
struct Rest {
    store: Arc<dyn AnyEventStore>,
    session: Box<str>,
    stream: Box<str>,
    /// The index of the last event that the client has seen.
    seen: u64,
}

impl Rest {
    /// The next events. `None` where not all of them are there.
    async fn fetch(&self) -> Option<Vec<Bytes>> {
        let found = self
            .store
            .after(&self.session, &self.stream, self.seen, REPLAYED);
        match found.await {
            Ok(Replay::Events { events, .. }) => Some(events),
            Ok(Replay::Lost) => None,
            Err(error) => {
                tracing::warn!(%error, "a store of events failed");
                None
            }
        }
    }

    /// Sends these events, and all that follow.
    fn respond(self, events: Vec<Bytes>) -> Response<ResponseBody> {
        let rest = stream::unfold((self, Some(events)), |(mut rest, events)| async move {
            let events = match events {
                Some(events) if !events.is_empty() => events,
                // What was sent last may have come after they were asked for.
                _ => rest.fetch().await?,
            };
            if events.is_empty() {
                return None;
            }
            let out = replayed(&rest.stream, &mut rest.seen, &events);
            Some((Bytes::from(out), (rest, None)))
        });
        answer::events(ResponseBody::stream(rest))
    }
}
