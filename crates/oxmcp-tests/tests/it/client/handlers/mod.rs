//! Handlers of a client: for requests of servers, and for their notifications.

mod elicitation;
mod log_level;
mod notifications;
mod roots;
mod sampling;
