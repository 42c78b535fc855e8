//! Who wants to hear that a resource was updated, and telling them.
//! See [subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions), and for
//! clients until 2025-11-25 [those of then](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#subscriptions).

mod hooks;
mod quota;
mod seen;
mod session;
mod topics;
mod watches;

pub(crate) use hooks::Subscribing;
pub(super) use quota::Quota;
pub(super) use seen::retain_seen;
pub(super) use session::{Subscribed, subscribe, unsubscribe};
pub(crate) use topics::Topics;
pub(super) use watches::{Watches, release};
