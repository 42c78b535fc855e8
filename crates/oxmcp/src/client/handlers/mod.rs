//! The user's handlers of a server's requests and notifications.

pub(super) mod arguments;
pub(super) mod elicitation;
pub(super) mod notifications;
pub(super) mod roots;
pub(super) mod sampling;
mod state;
pub(super) mod url_elicitations;
