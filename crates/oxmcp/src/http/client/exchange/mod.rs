//! The exchanges with a server: each is the POST of a message and its response.

pub(super) mod event_stream;
pub(super) mod executor;
pub(super) mod message;
pub(super) mod post;
pub(super) mod requests;
pub(super) mod response;
pub(super) mod session;
pub(super) mod shared;
pub(super) mod sink;
