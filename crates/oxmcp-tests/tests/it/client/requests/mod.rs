//! Requests that a client makes: calls, listings, typed results, rounds of questions, mirrored
//! headers.

mod calls;
mod interrupted_rounds;
mod listing;
mod manual_rounds;
mod methods;
pub(crate) mod mirrored_headers;
mod paused_deadlines;
mod refreshed_headers;
pub(crate) mod rounds;
mod structured_results;
