//! Definitions of features: the methods that they have in common, and checks against the rules of hosts.

pub(super) mod findings;
pub(super) mod options;
