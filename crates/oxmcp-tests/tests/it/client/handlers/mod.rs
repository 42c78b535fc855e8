//! Handlers of a client: for what servers ask, and for their notifications.

mod elicitation;
mod log_level;
mod notifications;
mod roots;
mod sampling;
