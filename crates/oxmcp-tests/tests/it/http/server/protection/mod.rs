//! Endpoints that demand access tokens.
//!
//! | file | what is in it |
//! |---|---|
//! | `issuer.rs` | an issuer by hand, and requests with its tokens |
//! | `requests.rs` | which requests are let in, and how others are refused |
//! | `owners.rs` | what belongs to the issuer, subject and client of a token |
//! | `bad_tokens.rs` | tokens that must not be taken, of each kind |
//! | `proofs.rs` | proofs of possession (DPoP) and their nonces |
//! | `held_against_tokens.rs` | the scopes of what a message names |
//! | `permitted.rs` | features that a caller does not see, by its scopes or otherwise |
//! | `log_lines.rs` | what is logged of tokens |
//! | `streams.rs` | streams and calls that outlast their tokens |
//! | `tasks.rs` | tasks of tools that need scopes |
//! | `slow_issuers.rs` | issuers that are slow, and those that wait for others |

mod bad_tokens;
mod held_against_tokens;
mod issuer;
mod log_lines;
mod owners;
mod permitted;
mod proofs;
mod requests;
mod slow_issuers;
mod streams;
mod tasks;
