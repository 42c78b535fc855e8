//! The answer to a request, before it is known whether the call is over.

use crate::session::outbound::{call::ContinuationGuard, calls::CallResult};

/// The answer to a request that was made once.
pub(crate) enum CallAnswer {
    /// A result that depends only on the params.
    Complete(CallResult),
    /// A result of a type that an extension has added.
    Extended(CallResult),
    /// The server asks for input before it gives the result.
    InputRequired(PendingInput),
}

/// A result that asks for input. While this value lives, a session that is being closed waits for the call.
pub(crate) struct PendingInput {
    pub(crate) result: Box<str>,
    pub(crate) _guard: ContinuationGuard,
}
