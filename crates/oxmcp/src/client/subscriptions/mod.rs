//! Subscriptions: the `subscriptions/listen` of the user, and those that a session keeps open for handlers and watched
//! resources.
//!
//! | | |
//! |-|-|
//! | `subscription.rs`, `resource_watch.rs` | the handles that users read |
//! | `events.rs`, `listener.rs` | their events, and the state of a subscription |
//! | `listen_request.rs` | one request, and the pauses between requests |
//! | `desired.rs`, `sync.rs` | the changes that handlers and watchers want, and the task that subscribes to them |

pub(super) mod desired;
pub(super) mod events;
pub(super) mod listen_request;
pub(super) mod listener;
pub(super) mod resource_watch;
pub(super) mod subscription;
pub(super) mod sync;
