//! The user's handlers of a server's requests and notifications.
//!
//! | | |
//! |-|-|
//! | `arguments.rs` | the arguments of handlers that answer, and the erasure of their types |
//! | `elicitation.rs`, `sampling.rs`, `roots.rs` | one file for each kind of request |
//! | `url_elicitations.rs` | the URLs that the user was sent to, until the server says that it is complete |
//! | `state.rs` | handlers that share a state |
//! | `notifications.rs` | list changes, updates of resources, logs, completed elicitations |

pub(super) mod arguments;
pub(super) mod elicitation;
pub(super) mod notifications;
pub(super) mod roots;
pub(super) mod sampling;
mod state;
pub(super) mod url_elicitations;
