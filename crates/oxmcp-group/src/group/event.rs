//! The events of a group, and their bounded queue.

use tokio::sync::broadcast::{Receiver, error::RecvError};

use super::status::ServerState;

/// The number of events that wait for a reader. A reader that is slower loses the oldest, and is told so.
pub(super) const CAPACITY: usize = 256;

/// A change in a group, from [`GroupSession::events`](crate::GroupSession::events).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GroupEvent {
    /// The state of a server has changed.
    Server {
        /// The label of the server.
        server: String,
        /// Its new state.
        state: ServerState,
    },
    /// The process of a server was restarted while its session stays open (2026-07-28 and later). Whatever it kept in memory is
    /// lost.
    Restarted {
        /// The label of the server.
        server: String,
    },
    /// The list of tools of the group has changed.
    ToolsChanged,
    /// The list of prompts of the group has changed.
    PromptsChanged,
    /// The list of resources or resource templates of the group has changed.
    ResourcesChanged,
    /// The reader was too slow, and this number of events was dropped: read the state and the lists again.
    Missed(u64),
}

/// The events of a group since the receiver was created.
#[derive(Debug)]
pub struct GroupEvents(pub(super) Receiver<GroupEvent>);

impl GroupEvents {
    /// Returns the next event. `None` when the group is closed and all events were returned.
    ///
    /// # Cancel safety
    /// Cancel safe: no event is lost.
    pub async fn next(&mut self) -> Option<GroupEvent> {
        match self.0.recv().await {
            Ok(event) => Some(event),
            Err(RecvError::Lagged(count)) => Some(GroupEvent::Missed(count)),
            Err(RecvError::Closed) => None,
        }
    }
}
