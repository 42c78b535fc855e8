//! Definitions of features: their common methods, and checks against the rules of hosts.

pub(super) mod findings;
pub(super) mod options;
