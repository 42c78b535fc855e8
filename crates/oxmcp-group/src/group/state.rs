//! The state that the handles, the calls and the supervisors of a group share.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use oxmcp::{CancellationToken, Client, ClientSession, Error, Result};
use tokio::sync::{Notify, broadcast, watch};

use super::{
    catalog::{Catalog, Listed},
    event::{self, GroupEvent},
    lent::Home,
    lists::Lists,
    status::{ServerState, ServerStatus},
};
use crate::{filter::ToolFilter, router::Naming};

/// A server of the group: what does not change.
pub(super) struct Member {
    pub(super) label: String,
    pub(super) client: Client,
    pub(super) home: Home,
    pub(super) filters: Vec<ToolFilter>,
    pub(super) connect_timeout: Duration,
    pub(super) call_timeout: Option<Duration>,
    pub(super) is_required: bool,
    pub(super) changes: Arc<Changes>,
}

/// The changes that a server has reported, and that its supervisor has not handled yet: bits of kinds.
#[derive(Default)]
pub(super) struct Changes {
    kinds: AtomicU8,
    reported: Notify,
}

impl Changes {
    pub(super) fn report(&self, kinds: u8) {
        self.kinds.fetch_or(kinds, Ordering::AcqRel);
        self.reported.notify_one();
    }

    /// Waits for changes, and takes them.
    pub(super) async fn take(&self) -> u8 {
        loop {
            let kinds = self.kinds.swap(0, Ordering::AcqRel);
            if kinds != 0 {
                return kinds;
            }
            self.reported.notified().await;
        }
    }
}

pub(super) struct Shared {
    pub(super) members: Vec<Member>,
    pub(super) stop: CancellationToken,
    /// Wakes a supervisor that waits before it tries again, by index.
    pub(super) retries: Vec<Notify>,
    naming: Naming,
    state: Mutex<State>,
    version: watch::Sender<u64>,
}

struct State {
    slots: Vec<Slot>,
    catalog: Arc<Catalog>,
    /// `None` when the group is closed.
    events: Option<broadcast::Sender<GroupEvent>>,
}

/// A server of the group: what changes.
#[derive(Clone)]
pub(super) struct Slot {
    pub(super) state: ServerState,
    pub(super) session: Option<ClientSession>,
    pub(super) lists: Arc<Lists>,
    /// Whether its entries are in the lists of the group. They stay there while it is connected again for the first time.
    pub(super) is_shown: bool,
    /// The reason of the last failure.
    pub(super) reason: String,
    /// The outcome of the first attempt to connect: `None` until it is over, or the reason of its failure.
    pub(super) first: Option<Result<(), String>>,
}

impl Shared {
    pub(super) fn new(members: Vec<Member>, naming: Naming) -> Self {
        let slot = Slot {
            state: ServerState::Connecting,
            session: None,
            lists: Arc::default(),
            is_shown: false,
            reason: String::new(),
            first: None,
        };
        Self {
            state: Mutex::new(State {
                slots: vec![slot; members.len()],
                catalog: Arc::default(),
                events: Some(broadcast::Sender::new(event::CAPACITY)),
            }),
            retries: members.iter().map(|_| Notify::new()).collect(),
            members,
            stop: CancellationToken::new(),
            naming,
            version: watch::Sender::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.lock().catalog)
    }

    pub(super) fn lists(&self, index: usize) -> Arc<Lists> {
        let state = self.lock();
        let slot = state.slots.get(index);
        slot.map(|it| Arc::clone(&it.lists)).unwrap_or_default()
    }

    /// Changes the state of a server, and all that follows from it: the catalog, the events.
    pub(super) fn change(&self, index: usize, change: impl FnOnce(&mut Slot)) {
        let mut guard = self.lock();
        let state = &mut *guard;
        let Some(slot) = state.slots.get_mut(index) else {
            return;
        };
        let before = slot.clone();
        change(slot);
        let is_same_state = before.state == slot.state;
        let is_same_list = before.is_shown == slot.is_shown && before.lists == slot.lists;
        let new_state = slot.state.clone();
        if !is_same_state {
            let server = self.label(index).to_owned();
            let event = GroupEvent::Server {
                server,
                state: new_state,
            };
            state.send(event);
        }
        if !is_same_list {
            self.merge(state);
        }
        drop(guard);
        // The last handle of a session may be in it, and ends the session.
        drop(before);
        self.version.send_modify(|version| *version += 1);
    }

    fn merge(&self, state: &mut State) {
        let servers = self.members.iter().zip(&state.slots);
        let listed: Vec<_> = servers
            .map(|(member, slot)| Listed {
                label: &member.label,
                lists: &slot.lists,
                is_shown: slot.is_shown,
            })
            .collect();
        let new = Catalog::new(&self.naming, &listed);
        let old = std::mem::replace(&mut state.catalog, Arc::new(new));
        let new = Arc::clone(&state.catalog);
        for (is_same, event) in [
            (old.tools == new.tools, GroupEvent::ToolsChanged),
            (old.prompts == new.prompts, GroupEvent::PromptsChanged),
            (
                old.resources == new.resources && old.templates == new.templates,
                GroupEvent::ResourcesChanged,
            ),
        ] {
            if !is_same {
                state.send(event);
            }
        }
    }

    pub(super) fn send(&self, event: GroupEvent) {
        self.lock().send(event);
    }

    pub(super) fn subscribe(&self) -> broadcast::Receiver<GroupEvent> {
        match &self.lock().events {
            Some(events) => events.subscribe(),
            None => broadcast::Sender::new(1).subscribe(),
        }
    }

    pub(super) fn end_events(&self) {
        self.lock().events = None;
    }

    pub(super) fn label(&self, index: usize) -> &str {
        self.members.get(index).map_or("", |it| &it.label)
    }

    /// Waits until a condition holds for all servers.
    pub(super) async fn until_all(&self, holds: impl Fn(&Slot) -> bool) {
        let mut version = self.version.subscribe();
        loop {
            version.mark_unchanged();
            if self.lock().slots.iter().all(&holds) {
                return;
            }
            // The sender is in `self`, so that it cannot be gone.
            let _ = version.changed().await;
        }
    }

    /// The reason for which the first attempt to connect to a server failed.
    pub(super) fn first_failure(&self, index: usize) -> Option<String> {
        self.lock().slots.get(index)?.first.clone()?.err()
    }

    /// The session of a server. Waits while a server that was connected is being connected again.
    ///
    /// # Errors
    /// If the server is not connected.
    pub(super) async fn session(&self, index: usize) -> Result<ClientSession> {
        let mut version = self.version.subscribe();
        loop {
            version.mark_unchanged();
            let slot = self.lock().slots.get(index).cloned();
            let label = self.label(index);
            match slot {
                Some(slot) => match (slot.session, slot.state) {
                    (Some(session), ServerState::Ready) => return Ok(session),
                    (_, ServerState::Connecting) if slot.is_shown => {}
                    (_, ServerState::Closed) => {
                        return Err(Error::closed("the group is closed"));
                    }
                    _ => {
                        let reason = slot.reason;
                        return Err(Error::closed(format!(
                            "the server `{label}` is not connected: {reason}; it is tried again by itself"
                        )));
                    }
                },
                None => return Err(Error::internal("unknown server")),
            }
            let _ = version.changed().await;
        }
    }

    pub(super) fn open_session(&self, index: usize) -> Option<ClientSession> {
        self.lock().slots.get(index)?.session.clone()
    }

    /// The states of all servers.
    pub(super) fn statuses(&self) -> Vec<ServerStatus> {
        let (slots, catalog) = {
            let state = self.lock();
            (state.slots.clone(), Arc::clone(&state.catalog))
        };
        let servers = self.members.iter().zip(slots).enumerate();
        let status = |(index, (member, slot)): (usize, (&Member, Slot))| {
            let session = slot.session.as_ref();
            let lists = &slot.lists;
            let tools = &catalog.tool_names;
            let prompts = &catalog.prompt_names;
            ServerStatus {
                label: member.label.clone(),
                server_info: session.and_then(|it| it.server_info().cloned()),
                revision: session.map(ClientSession::revision),
                instructions: session.and_then(|it| it.instructions().map(str::to_owned)),
                tools: Catalog::exposed_names(tools, index, &lists.tools.entries, |it| &it.name),
                prompts: Catalog::exposed_names(prompts, index, &lists.prompts.entries, |it| {
                    &it.name
                }),
                denied: lists.denied,
                problems: lists.problems(),
                state: slot.state,
            }
        };
        servers.map(status).collect()
    }

    /// The server and the original of the URI of a resource.
    ///
    /// # Errors
    /// If no server has the resource, or it is not known which.
    pub(super) fn route_uri(&self, uri: &str) -> Result<(usize, String)> {
        if self.members.len() == 1 {
            return Ok((0, uri.to_owned()));
        }
        let found = self.catalog().uris.target(uri);
        found.ok_or_else(|| Error::resource_not_found(uri))
    }

    /// Changes a URI of a server to the form by which the group reads it.
    pub(super) fn expose_uri(&self, server: usize, uri: &mut String) {
        if self.members.len() == 1 {
            return;
        }
        let catalog = self.catalog();
        *uri = catalog.uris.exposed_link(server, uri).into_owned();
    }
}

impl State {
    fn send(&self, event: GroupEvent) {
        if let Some(events) = &self.events {
            // Without a reader, the event is of no interest.
            let _ = events.send(event);
        }
    }
}
