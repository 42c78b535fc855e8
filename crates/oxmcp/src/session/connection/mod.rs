//! The connection to a peer: the link, the role at this end of it, and the contexts of the peer's requests.
//!
//! Each of them needs only those before it: [`Link`](link::Link) works for any role, [`Role`] gets the connection with each
//! message, and [`RequestContext`] holds the connection on which its request arrived. The methods of a [`Connection`] that call
//! its role are next to what they do: for receiving in `inbound/`, for calls in `outbound/call.rs`, and for closing in
//! `driver/shutdown.rs`.

mod caller;
mod context;
mod link;
mod role;
mod shutdown;

pub(crate) use caller::Caller;
#[cfg(feature = "http-server")]
pub(crate) use caller::RequestHead;
pub use context::RequestContext;
pub(crate) use context::{ContextParts, Peer};
pub(crate) use role::{Arrival, Connection, Role, Side};
#[cfg(feature = "http-server")]
pub(crate) use shutdown::OnClosing;
pub(crate) use shutdown::Outcome;
