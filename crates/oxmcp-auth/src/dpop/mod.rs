//! Proofs of possession (DPoP), which prove that the sender of a token has the key that the token is bound to.
//!
//! A client makes proofs with a [`ProofKey`]; a server checks them with a [`ProofVerifier`] and a [`ReplayCache`]. See
//! [RFC 9449](https://www.rfc-editor.org/rfc/rfc9449).

mod nonce;
mod proof;
mod replay;
mod verifier;

pub use nonce::NonceKeys;
pub use proof::{Proof, ProofKey};
pub use replay::ReplayCache;
pub use verifier::{ProofError, ProofVerifier, Proven, ProvenRequest};
