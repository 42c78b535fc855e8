//! Endpoints that demand access tokens.

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
