//! Endpoints that demand access tokens.
//!
//! | file | contents |
//! |---|---|
//! | `issuer.rs` | an issuer by hand, and requests with its tokens |
//! | `requests.rs` | requests that are let in, and the refusal of others |
//! | `own_tokens.rs` | bearer tokens of an endpoint's own, and principals of a middleware |
//! | `owners.rs` | sessions, states and tasks, which belong to the issuer, subject and client of a token |
//! | `bad_tokens.rs` | tokens that must be refused, of each kind |
//! | `proofs.rs` | proofs of possession (DPoP) and their nonces |
//! | `held_against_tokens.rs` | the scopes of the features that a message names |
//! | `permitted.rs` | features that are hidden from a caller, by its scopes or otherwise |
//! | `log_lines.rs` | log lines about tokens |
//! | `streams.rs` | streams and calls that outlast their tokens |
//! | `tasks.rs` | tasks of tools that need scopes |
//! | `slow_issuers.rs` | slow issuers, and requests that wait for other issuers |

mod bad_tokens;
mod held_against_tokens;
mod issuer;
mod log_lines;
mod own_tokens;
mod owners;
mod permitted;
mod proofs;
mod requests;
mod slow_issuers;
mod streams;
mod tasks;
