//! The client's side of HTTP, against scripted servers.

mod eras;
mod exchange;
#[cfg(feature = "auth")]
mod login;
mod mirrored_headers;
mod peer;
mod reconnect;
mod redirects;
mod settings;
mod sockets;
mod sse_2024;
