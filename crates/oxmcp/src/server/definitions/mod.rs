//! Definitions of features: their common methods, and checks against the rules of hosts.

pub(crate) mod findings;
pub(crate) mod options;
