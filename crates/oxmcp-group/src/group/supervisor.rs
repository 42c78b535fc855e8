//! The supervisor of one server: it connects, lists, notices changes and the end of the session, and connects again.

use std::{sync::Arc, time::Duration};

use oxmcp::{ClientSession, Error, Result};
use tokio::{
    select,
    time::{Instant, sleep, timeout},
};

use super::{
    event::GroupEvent,
    lists::{ALL, Lists},
    state::{Member, Shared},
    status::ServerState,
};

/// The bit of a restarted process, among the kinds of changed lists.
pub(super) const RESTARTED: u8 = 1 << 7;

/// The pause between two readings of lists: a server that reports changes without end costs this much less.
const LIST_PAUSE: Duration = Duration::from_millis(100);

/// The pause after the first failure. It doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A session that lived for this long is connected again at once, and its failures before count no more.
const STABLE: Duration = Duration::from_secs(30);

/// Keeps the server at an index connected, until the group stops.
pub(super) async fn supervise(shared: Arc<Shared>, index: usize) {
    let Some(member) = shared.members.get(index) else {
        return;
    };
    let mut pause = FIRST_PAUSE;
    let mut last: Option<ClientSession> = None;
    loop {
        let opened = select! {
            biased;
            () = shared.stop.cancelled() => break,
            opened = open(member, last.as_ref(), shared.lists(index)) => opened,
        };
        let reason = match opened {
            Ok((session, lists, failed)) => {
                last = Some(session.clone());
                let begun = Instant::now();
                set_ready(&shared, index, &session, lists);
                let Some(reason) = serve(&shared, index, member, &session, failed).await else {
                    break;
                };
                if begun.elapsed() >= STABLE {
                    pause = FIRST_PAUSE;
                    set_connecting(&shared, index);
                    continue;
                }
                reason
            }
            Err(error) => error.to_string(),
        };
        set_failed(&shared, index, reason);
        select! {
            biased;
            () = shared.stop.cancelled() => break,
            () = sleep(pause) => pause = LONGEST_PAUSE.min(pause * 2),
            () = wake(&shared, index) => pause = FIRST_PAUSE,
        }
        set_connecting(&shared, index);
    }
    if let Some(session) = last {
        // The reason is of no interest any more.
        let _ = session.close().await;
    }
    shared.change(index, |slot| {
        slot.state = ServerState::Closed;
        slot.session = None;
        slot.is_shown = false;
        slot.first
            .get_or_insert_with(|| Err("the group is closed".into()));
    });
}

async fn wake(shared: &Shared, index: usize) {
    match shared.retries.get(index) {
        Some(retry) => retry.notified().await,
        None => std::future::pending().await,
    }
}

fn set_ready(shared: &Shared, index: usize, session: &ClientSession, lists: Lists) {
    for problem in lists.problems() {
        tracing::warn!(
            server = shared.label(index),
            problem,
            "a server of the group has an incomplete list"
        );
    }
    let session = session.clone();
    shared.change(index, |slot| {
        slot.state = ServerState::Ready;
        slot.session = Some(session);
        slot.lists = Arc::new(lists);
        slot.is_shown = true;
        slot.first.get_or_insert(Ok(()));
    });
}

fn set_connecting(shared: &Shared, index: usize) {
    shared.change(index, |slot| {
        slot.state = ServerState::Connecting;
        slot.session = None;
    });
}

fn set_failed(shared: &Shared, index: usize, reason: String) {
    tracing::warn!(
        server = shared.label(index),
        reason,
        "a server of the group is not connected"
    );
    shared.change(index, |slot| {
        slot.reason.clone_from(&reason);
        slot.first.get_or_insert_with(|| Err(reason.clone()));
        slot.state = ServerState::Failed { reason };
        slot.session = None;
        slot.is_shown = false;
    });
}

/// Opens a session, and reads all lists. Returns the kinds of those that could not be read, too.
async fn open(
    member: &Member,
    last: Option<&ClientSession>,
    lists: Arc<Lists>,
) -> Result<(ClientSession, Lists, u8)> {
    let limit = member.connect_timeout;
    let mut lists = Arc::unwrap_or_clone(lists);
    let opening = async {
        let session = match last {
            Some(last) => last.reconnect().await?,
            None => {
                let transport = member
                    .home
                    .lend()
                    .ok_or_else(|| Error::closed("the last connection is still being closed"))?;
                member.client.connect(transport).await?
            }
        };
        let failed = lists
            .read(&session, ALL, &member.label, &member.filters)
            .await;
        Ok((session, lists, failed))
    };
    // The future is large, and waits most of the time.
    match timeout(limit, Box::pin(opening)).await {
        Ok(opened) => opened,
        Err(_) => Err(Error::closed(format!(
            "the server did not connect and list its features within {limit:?}"
        ))),
    }
}

/// Follows the changes of a session, and reads the lists again that could not be read. Returns the reason of its end, or `None` when
/// the group stops.
async fn serve(
    shared: &Shared,
    index: usize,
    member: &Member,
    session: &ClientSession,
    mut failed: u8,
) -> Option<String> {
    let mut pause = FIRST_PAUSE;
    loop {
        let again = async {
            match failed {
                0 => std::future::pending().await,
                _ => sleep(pause).await,
            }
        };
        let changed = select! {
            biased;
            () = shared.stop.cancelled() => return None,
            ended = session.wait() => return Some(reason_of(ended)),
            changed = member.changes.take() => changed,
            () = again => {
                pause = LONGEST_PAUSE.min(pause * 2);
                failed
            }
        };
        if changed & RESTARTED != 0 {
            shared.send(GroupEvent::Restarted {
                server: member.label.clone(),
            });
        }
        let kinds = if changed & RESTARTED != 0 {
            ALL
        } else {
            changed
        };
        let mut lists = Arc::unwrap_or_clone(shared.lists(index));
        let reading = lists.read(session, kinds, &member.label, &member.filters);
        select! {
            biased;
            () = shared.stop.cancelled() => return None,
            ended = session.wait() => return Some(reason_of(ended)),
            read = timeout(member.connect_timeout, Box::pin(reading)) => {
                if let Ok(unread) = read {
                    failed = failed & !kinds | unread;
                    shared.change(index, |slot| slot.lists = Arc::new(lists));
                } else {
                    tracing::warn!(server = member.label, "a server of the group did not list its features in time; trying again");
                    failed |= kinds;
                }
            }
        }
        if failed == 0 {
            pause = FIRST_PAUSE;
        }
        select! {
            biased;
            () = shared.stop.cancelled() => return None,
            ended = session.wait() => return Some(reason_of(ended)),
            () = sleep(LIST_PAUSE) => {}
        }
    }
}

fn reason_of(ended: Result<()>) -> String {
    match ended {
        Ok(()) => "the server has ended the session".into(),
        Err(error) => error.to_string(),
    }
}
