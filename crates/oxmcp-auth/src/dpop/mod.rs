//! Proofs of possession (DPoP), which prove that the sender of a token has the key that the token is bound to.
//!
//! See [RFC 9449](https://www.rfc-editor.org/rfc/rfc9449).
//!
//! | | |
//! |---|---|
//! | `proof` | [`ProofKey`] and [`Proof`]: the proofs that clients make |
//! | `verifier` | [`ProofVerifier`] and [`ProvenRequest`]: the checks of proofs by servers |
//! | `nonce` | [`NonceKeys`]: nonces that a server can check without storing them |
//! | `replay` | [`ReplayCache`]: the proofs that were seen, so that none is used twice |

mod nonce;
mod proof;
mod replay;
mod verifier;

pub use nonce::NonceKeys;
pub use proof::{Proof, ProofKey};
pub use replay::ReplayCache;
pub use verifier::{ProofError, ProofVerifier, Proven, ProvenRequest};
