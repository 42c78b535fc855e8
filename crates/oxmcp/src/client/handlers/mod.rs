//! The user's handlers of a server's requests and notifications.
//!
//! | | |
//! |-|-|
//! | `arguments.rs` | the arguments of handlers of requests, and the erasure of their types |
//! | `elicitation.rs`, `sampling.rs`, `roots.rs` | one file for each kind of request |
//! | `url_elicitations.rs` | the elicitations by URL that the server has not reported as complete yet |
//! | `state.rs` | handlers that share a state |
//! | `notifications.rs` | list changes, updates of resources, logs, completed elicitations |

pub(super) mod arguments;
pub(super) mod elicitation;
pub(super) mod notifications;
pub(super) mod roots;
pub(super) mod sampling;
mod state;
pub(super) mod url_elicitations;
