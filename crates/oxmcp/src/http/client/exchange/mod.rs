//! The exchanges with a server: each is the POST of a message and its response.

pub(crate) mod event_stream;
pub(crate) mod executor;
pub(crate) mod message;
pub(crate) mod post;
pub(crate) mod requests;
pub(crate) mod response;
pub(crate) mod session;
pub(crate) mod shared;
pub(crate) mod sink;
