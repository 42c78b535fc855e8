//! Definitions of features: the methods that they have in common, and checks against the rules of hosts.
//!
//! | file | contents |
//! |---|---|
//! | `options.rs` | the options that tools, prompts, resources and templates have in common |
//! | `findings.rs` | the parts of definitions that hosts are known to refuse or to handle badly |

pub(super) mod findings;
pub(super) mod options;
