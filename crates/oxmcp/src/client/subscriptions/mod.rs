//! Subscriptions: the `subscriptions/listen` of the user, and those that a session keeps open for handlers and watched
//! resources.

pub(crate) mod desired;
pub(crate) mod events;
pub(crate) mod listen_request;
pub(crate) mod listener;
pub(crate) mod resource_watch;
pub(crate) mod subscription;
pub(crate) mod sync;
