//! Subscriptions to what servers say has changed.

mod backoff;
pub(super) mod desired;
pub(super) mod events;
pub(super) mod listen_request;
pub(super) mod listener;
pub(super) mod resource_watch;
pub(super) mod subscription;
pub(super) mod sync;
