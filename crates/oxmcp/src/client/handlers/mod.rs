//! The user's handlers of a server's requests and notifications.

pub(crate) mod arguments;
pub(crate) mod elicitation;
pub(crate) mod notifications;
pub(crate) mod roots;
pub(crate) mod sampling;
mod state;
pub(crate) mod url_elicitations;
