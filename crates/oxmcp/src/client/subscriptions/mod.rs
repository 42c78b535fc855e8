//! Subscriptions: the `subscriptions/listen` of the user, and those that a session keeps open for handlers and watched
//! resources.

pub(super) mod desired;
pub(super) mod events;
pub(super) mod listen_request;
pub(super) mod listener;
pub(super) mod resource_watch;
pub(super) mod subscription;
pub(super) mod sync;
