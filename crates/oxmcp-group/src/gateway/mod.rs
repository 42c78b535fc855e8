//! Gateways: one or several servers behind one.
//!
//! The lists are those of a [`ClientGroup`](crate::ClientGroup), whose entries become features of a server (`features.rs`). Each
//! call of them is passed on (`calls.rs`) in a session that belongs to the client's session (`links.rs`); what the upstream sends
//! meanwhile comes back as events (`events.rs`). Methods of extensions are passed on as they are (`extensions.rs`).

mod builder;
mod calls;
mod events;
mod extensions;
mod features;
mod links;
mod offers;
mod parked;
mod path;
mod state;
mod tasks;
mod upstream;
mod watches;

pub use builder::{Gateway, GatewaySession, ProxyServer};
pub use upstream::Upstream;
