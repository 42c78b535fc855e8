//! Endpoints that demand access tokens.
//!
//! | file | what is in it |
//! |---|---|
//! | `issuer.rs` | an issuer by hand, and requests with its tokens |
//! | `requests.rs` | which requests are let in, and how others are refused |
//! | `bad_tokens.rs` | tokens that must not be taken, of each kind |
//! | `proofs.rs` | proofs of possession (DPoP) and their nonces |
//! | `held_against_tokens.rs` | the scopes of what a message names |
//! | `permitted.rs` | features that a caller does not see, by its scopes or otherwise |
//! | `streams.rs` | streams and calls that outlast their tokens |
//! | `slow_issuers.rs` | issuers that are slow, and those that wait for others |

mod bad_tokens;
mod held_against_tokens;
mod issuer;
mod permitted;
mod proofs;
mod requests;
mod slow_issuers;
mod streams;
