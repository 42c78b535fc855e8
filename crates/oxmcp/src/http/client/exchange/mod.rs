//! The exchanges with a server: each is the POST of a message and its response.
//!
//! | | |
//! |---|---|
//! | `shared` | the state that all exchanges of a connection share |
//! | `executor` | the executor that polls them, and the queue of events for the reader |
//! | `message` | a message that is posted |
//! | `post` | an exchange from its start to its answer |
//! | `requests` | the HTTP requests, with headers and redirects |
//! | `response`, `event_stream` | the two forms of a response |
//! | `sink` | the sink of the messages in a response |
//! | `session` | the session of a legacy server |

pub(super) mod event_stream;
pub(super) mod executor;
pub(super) mod message;
pub(super) mod post;
pub(super) mod requests;
pub(super) mod response;
pub(super) mod session;
pub(super) mod shared;
pub(super) mod sink;
