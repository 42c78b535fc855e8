//! Proofs of possession (DPoP): that who sends a token has the key that the token is bound to.
//!
//! See [RFC 9449](https://www.rfc-editor.org/rfc/rfc9449).
//!
//! | | |
//! |---|---|
//! | `proof` | [`ProofKey`] and [`Proof`]: proofs, as clients make them |
//! | `verifier` | [`ProofVerifier`] and [`ProvenRequest`]: proofs, as servers check them |
//! | `nonce` | [`NonceKeys`]: nonces that a server can check without having kept them |
//! | `replay` | [`ReplayCache`]: the proofs that were seen, so that none is used twice |

mod nonce;
mod proof;
mod replay;
mod verifier;

pub use nonce::NonceKeys;
pub use proof::{Proof, ProofKey};
pub use replay::ReplayCache;
pub use verifier::{ProofError, ProofVerifier, Proven, ProvenRequest};
