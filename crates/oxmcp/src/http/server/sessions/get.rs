//! GET opens or resumes a stream of a session, and DELETE ends the session.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http::{Response, StatusCode};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::{
    event_stream::{self, StreamStart},
    lifecycle,
    post::no_session,
    stored_events::encode,
    stream_writer::StreamKey,
    streams::{Purpose, REPLAYED, purpose},
};
use crate::{
    error::{Error, Result},
    http::{
        names::LAST_EVENT_ID,
        server::{
            endpoint::{EndpointRequest, StreamableHttp},
            response::{self, Refused, ResponseBody},
            validation::{Refusal, single},
        },
    },
    store::{EventId, Replay},
};

/// Opens the GET stream of a session, or resumes a stream.
///
/// # Errors
/// The response that refuses the request.
pub(crate) async fn get(request: EndpointRequest) -> Result<Response<ResponseBody>, Refused> {
    request.check_sessions()?;
    if !request.names_session || request.endpoint.settings.json_only {
        return Err(Refusal::no_stream().into());
    }
    let EndpointRequest {
        endpoint,
        session,
        parts,
        ..
    } = request;
    let session = session.ok_or_else(|| no_session(None))?;
    let counted = count_stream(&endpoint)?;
    let connection = Arc::clone(session.connection());
    let store = &endpoint.settings.events;
    let mut start = StreamStart {
        purpose: Purpose::GetStream,
        resumed: None,
        taken: Vec::new(),
        reply: None,
        counted: Some(counted),
        saves: false,
        opening: None,
    };
    let settings = &endpoint.settings;
    if parts.headers.contains_key(LAST_EVENT_ID) {
        let seen = single(&parts.headers, &LAST_EVENT_ID).and_then(EventId::parse);
        let (Some(seen), Some(store)) = (seen, store) else {
            return Err(lost());
        };
        let Some(purpose) = purpose(seen.stream()) else {
            return Err(lost());
        };
        let rest = StoredReplay {
            place: StreamKey {
                store: Arc::clone(store),
                session: Arc::clone(session.id()),
                stream: seen.stream().into(),
            },
            seen: seen.index(),
        };
        let events = rest.fetch().await.map_err(|_| unknown())?;
        let events = events.ok_or_else(lost)?;
        let counted = &mut start.counted;
        let streams = &session.streams;
        if let Some(response) = streams.resume(&rest.place.stream, rest.seen, counted) {
            return Ok(response);
        }
        if session.shared().is_none()
            && (purpose == Purpose::Request || session.streams.has_get_stream())
        {
            return Ok(rest.respond(events));
        }
        start.purpose = purpose;
        start.resumed = Some((rest.place.stream, rest.seen));
    }
    if start.purpose == Purpose::Request {
        // Another node may be writing the stream.
        return event_stream::follow(&session, settings, start).ok_or_else(lost);
    }
    event_stream::begin(&session, connection, settings, start).ok_or_else(|| {
        let why =
            Error::invalid_request("stream is already open: a session has only one GET stream");
        response::refuse(StatusCode::CONFLICT, None, &why)
    })
}

/// Counts one more stream, until the returned token is dropped.
///
/// # Errors
/// If there are too many streams: the response that refuses the request.
fn count_stream(endpoint: &StreamableHttp) -> Result<TaskTrackerToken, Refused> {
    let limit = endpoint.settings.limits.http.max_streams;
    let streams = &endpoint.state.streams;
    let counted = streams.token();
    if streams.len() <= limit {
        return Ok(counted);
    }
    let why = Error::internal(format!(
        "stream limit reached: this server has {limit} streams; try again later"
    ));
    Err(response::unserved(None, &why))
}

/// Ends a session.
///
/// # Errors
/// The response that refuses the request.
pub(crate) async fn delete(request: EndpointRequest) -> Result<Response<ResponseBody>, Refused> {
    request.check_sessions()?;
    if !request.names_session {
        let why = Error::invalid_request(
            "missing header `Mcp-Session-Id`: DELETE ends the session that it names",
        );
        return Err(response::refuse(StatusCode::BAD_REQUEST, None, &why));
    }
    let session = request.session.ok_or_else(|| no_session(None))?;
    lifecycle::close(&request.endpoint, &session);
    // From here on the session cannot be found, though running handlers may finish.
    if let Some(shared) = session.shared() {
        shared.remove(true).await;
    }
    request.endpoint.state.sessions.remove(&session);
    Ok(response::empty(StatusCode::NO_CONTENT))
}

/// Rejects a request for events that are no longer stored, or never were.
fn lost() -> Refused {
    let why = Error::invalid_request(
        "cannot resume from this event ID: send GET without `Last-Event-ID`",
    );
    response::refuse(StatusCode::BAD_REQUEST, None, &why)
}

/// Rejects a request if it is unknown whether the events are stored. A client that hears they are lost would abandon the stream.
fn unknown() -> Refused {
    let why =
        Error::internal("could not resume the stream: the event store failed; try again later");
    response::unserved(None, &why)
}

/// The rest of a stream that has ended, or that another node sends.
struct StoredReplay {
    place: StreamKey,
    /// The index of the last event that the client has seen.
    seen: u64,
}

impl StoredReplay {
    /// The next events. `None` if not all of them are stored.
    ///
    /// # Errors
    /// If the store does not answer.
    async fn fetch(&self) -> Result<Option<Vec<Bytes>>> {
        match self.place.after(self.seen, REPLAYED).await {
            Ok(Replay::Events { events, .. }) => Ok(Some(events)),
            Ok(Replay::Lost) => Ok(None),
            Err(error) => {
                tracing::warn!(%error, "event store failed");
                Err(error)
            }
        }
    }

    /// Sends these events and all that follow.
    fn respond(self, events: Vec<Bytes>) -> Response<ResponseBody> {
        let rest = stream::unfold((self, Some(events)), |(mut rest, events)| async move {
            let events = match events {
                Some(events) if !events.is_empty() => events,
                // The last messages may have been stored after the events were fetched.
                _ => rest.fetch().await.ok()??,
            };
            if events.is_empty() {
                return None;
            }
            let out = encode(&rest.place.stream, rest.seen, &events, true, |_, _| true);
            rest.seen += events.len() as u64;
            Some((Bytes::from(out), (rest, None)))
        });
        response::events(ResponseBody::stream(rest))
    }
}
