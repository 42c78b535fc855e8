//! The user's handlers of what servers ask and say.

pub(super) mod arguments;
pub(super) mod elicitation;
pub(super) mod notifications;
pub(super) mod roots;
pub(super) mod sampling;
pub(super) mod url_elicitations;
