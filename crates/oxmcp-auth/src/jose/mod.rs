//! Signed tokens: keys, key sets, and signatures in compact form (JOSE), on `ring`.
//!
//! Encryption and symmetric algorithms are not supported: MCP needs neither, and a verifier without symmetric algorithms
//! cannot be tricked into using a public key as a secret.

mod algorithm;
pub(crate) mod base64url;
mod jwk;
mod jwks;
mod jws;
mod signing_key;

pub use algorithm::Algorithm;
pub use jwk::Jwk;
pub use jwks::{Jwks, KeyError};
pub use jws::Jws;
pub use signing_key::SigningKey;
