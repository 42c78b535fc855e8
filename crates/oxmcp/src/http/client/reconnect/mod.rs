//! Retries, resumption, session recovery and redirects.

pub(crate) mod redirect;
pub(crate) mod resumption;
pub(crate) mod retry;
pub(crate) mod session_recovery;
