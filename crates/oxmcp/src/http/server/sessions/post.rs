//! Requests of sessions: what `initialize` opens, and what is posted to it.

use std::{mem, sync::Arc};

use http::{HeaderValue, Response, StatusCode};
use tokio::time::timeout;

use crate::{
    Error,
    http::{
        names::SESSION_ID,
        server::{
            ResponseBody, StreamableHttp,
            answer::{self, Answer, Plain},
            events::{KEEP_ALIVE, messages},
            kept::{self, Kept},
            respond::{Asked, lasting_origin, origin},
            session::{self, InUse, Session, Unbegun},
            streams::{self, Opening, Purpose},
        },
    },
    jsonrpc::RequestId,
    session::{Connection, Last, Reply},
};

/// Opens a session with what `initialize` makes of it.
pub(super) fn open(asked: Asked, initialize: &str, take: impl FnOnce(&Arc<Connection>)) -> Answer {
    let Asked {
        endpoint,
        server,
        parts,
        ..
    } = asked;
    let origin = origin(parts);
    let id = match session::new_id() {
        Ok(id) => id,
        Err(why) => {
            let refused = answer::refuse(StatusCode::INTERNAL_SERVER_ERROR, None, &why);
            return Answer::Now(refused);
        }
    };
    let session = match Session::unbegun(&endpoint, server, id, &origin) {
        Ok(session) => session,
        Err(refused) => return Answer::Now(*refused),
    };
    if let Some(store) = &endpoint.settings.sessions
        && let Ok(params) = serde_json::from_str(initialize)
    {
        session.keep(Kept::new(Arc::clone(store), params, None));
    }
    let branch = session.branch(origin);
    take(&branch);
    Answer::later(opened(endpoint, session, branch))
}

/// The answer to what opens a session, which is one from here on.
async fn opened(
    endpoint: StreamableHttp,
    session: Unbegun,
    branch: Arc<Connection>,
) -> Response<ResponseBody> {
    let mut line = Vec::new();
    let mut answered = Vec::new();
    while !matches!(branch.outbox.reply(&mut line).await, Reply::Last(_)) {
        answered.append(&mut line);
    }
    answered.append(&mut line);
    // Nobody is asked or told anything before the client knows its session: the last message is the answer.
    let last = messages(&answered).last().unwrap_or_default().to_vec();
    // Middleware may refuse what was agreed on.
    if session.revision().is_none() || branch.failed_with().is_some() {
        return answer::json(StatusCode::OK, last);
    }
    let session = session::begin(&endpoint, session);
    endpoint.state.sessions.is_unused(&session);
    kept::begin_save(&session);
    kept::saved(&session).await;
    let mut response = answer::json(StatusCode::OK, last);
    if let Ok(id) = HeaderValue::from_str(session.id()) {
        response.headers_mut().insert(SESSION_ID, id);
    }
    response
}

/// Answers what was posted in a session.
pub(super) fn post(
    asked: Asked,
    id: Option<&RequestId>,
    posted: Posted,
    take: impl FnOnce(&Arc<Connection>),
) -> Answer {
    if !asked.names_session {
        let why = Error::invalid_request(
            "this request belongs to a session, which Mcp-Session-Id must name: initialize opens one; a request of revision \
             2026-07-28 needs none, but says its revision in `_meta`",
        );
        let refused = answer::refuse(StatusCode::BAD_REQUEST, id, &why);
        return Answer::Now(refused);
    }
    let Asked {
        endpoint,
        session,
        parts,
        ..
    } = asked;
    let Some(session) = session else {
        return Answer::Now(no_session(id));
    };
    let in_use = session.enter();
    // The session keeps who subscribes.
    let origin = if posted.changes_session {
        lasting_origin(&parts)
    } else {
        origin(parts)
    };
    let branch = session.branch(origin);
    take(&branch);
    let answered = if posted.is_answered {
        Waiting::of(branch).at_once()
    } else {
        Ok(Plain {
            status: StatusCode::ACCEPTED,
            line: Vec::new(),
        })
    };
    let saves = posted.changes_session && session.kept().is_some();
    match answered {
        Ok(plain) if !saves => Answer::Plain(plain),
        Err(waiting) if !saves => Answer::later(async move {
            let _in_use = in_use;
            waiting.answer(&endpoint, &session, false).await
        }),
        answered => Answer::later(kept_then(answered, endpoint, session, in_use)),
    }
}

/// The answer to what changes a session, once that is kept. It is kept, too, where the client goes away meanwhile.
async fn kept_then(
    answered: Result<Plain, Waiting>,
    endpoint: StreamableHttp,
    session: Arc<Session>,
    in_use: InUse,
) -> Response<ResponseBody> {
    let response = match answered {
        Ok(plain) => {
            kept::begin_save(&session);
            plain.response()
        }
        Err(waiting) => {
            let session = Arc::clone(&session);
            let answering = tokio::spawn(async move {
                let _in_use = in_use;
                let response = waiting.answer(&endpoint, &session, true).await;
                kept::begin_save(&session);
                response
            });
            let Ok(response) = answering.await else {
                return answer::empty(StatusCode::INTERNAL_SERVER_ERROR);
            };
            response
        }
    };
    kept::saved(&session).await;
    response
}

/// What was posted.
#[derive(Clone, Copy)]
pub(super) struct Posted {
    pub(super) is_answered: bool,
    /// Whether what is kept of the session is another afterwards.
    pub(super) changes_session: bool,
}

/// What a client is told that names no session, or one that is none of its own.
pub(super) fn no_session(id: Option<&RequestId>) -> Response<ResponseBody> {
    let why = Error::invalid_request(
        "there is no such session: it has ended, or never was; open one with initialize",
    );
    answer::refuse(StatusCode::NOT_FOUND, id, &why)
}

/// A request whose answer has not begun. A client that goes away cancels nothing, but will not get it.
struct Waiting {
    branch: Arc<Connection>,
    /// What was taken from its outbox.
    taken: Vec<u8>,
    reply: Option<Reply>,
    /// Whether somebody else sees to the answer.
    is_begun: bool,
}

impl Waiting {
    fn of(branch: Arc<Connection>) -> Self {
        Self {
            branch,
            taken: Vec::new(),
            reply: None,
            is_begun: false,
        }
    }

    /// The response, where all of it is there already, and is no stream.
    fn at_once(mut self) -> Result<Plain, Self> {
        let last = self.branch.outbox.take_last(&mut self.taken);
        self.reply = last.map(Reply::Last);
        self.whole().ok_or(self)
    }

    /// The response, where what was taken is all of it, and is no stream.
    fn whole(&mut self) -> Option<Plain> {
        let status = match self.reply {
            // Nothing is asked in a batch of notifications, and a request that was cancelled has no answer.
            Some(Reply::Last(Last::Nothing)) => StatusCode::ACCEPTED,
            Some(Reply::Last(Last::Message)) => StatusCode::OK,
            _ => return None,
        };
        let line = mem::take(&mut self.taken);
        Some(Plain { status, line })
    }

    /// The response: one message where there is one, a stream where there are more, or may be.
    async fn answer(
        mut self,
        endpoint: &StreamableHttp,
        session: &Arc<Session>,
        saves: bool,
    ) -> Response<ResponseBody> {
        if self.reply.is_none() {
            let reply = timeout(KEEP_ALIVE, self.branch.outbox.reply(&mut self.taken));
            self.reply = reply.await.ok();
            if let Some(plain) = self.whole() {
                return plain.response();
            }
        }
        let opening = Opening {
            purpose: Purpose::Request,
            resumed: None,
            taken: mem::take(&mut self.taken),
            reply: self.reply.take(),
            counted: None,
            saves,
        };
        self.is_begun = true;
        let store = endpoint.settings.events.clone();
        streams::begin(session, Arc::clone(&self.branch), store, opening)
            .unwrap_or_else(|| answer::empty(StatusCode::CONFLICT))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.is_begun {
            self.branch.outbox.close();
        }
    }
}
