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

#[cfg(feature = "server")]
pub(crate) use caller::Caller;
#[cfg(feature = "http-server")]
pub(crate) use caller::RequestHead;
pub(crate) use context::ContextParts;
#[cfg(any(feature = "client", feature = "server"))]
pub(crate) use context::Peer;
pub use context::RequestContext;
#[cfg(any(feature = "client", feature = "server"))]
pub(crate) use role::Role;
pub(crate) use role::{Arrival, Connection, Side};
#[cfg(feature = "http-server")]
pub(crate) use shutdown::OnClosing;
pub(crate) use shutdown::Outcome;
