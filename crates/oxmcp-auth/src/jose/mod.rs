//! Signed tokens: keys, key sets, and signatures in compact form (JOSE), on `ring`.
//!
//! | | |
//! |---|---|
//! | `algorithm` | [`Algorithm`]: the signature algorithms, none of which is symmetric |
//! | `base64url` | the encoding of every part of a token |
//! | `jwk` | [`Jwk`]: a public key, its thumbprint, and the check of a signature |
//! | `jwks` | [`Jwks`]: the key set of an issuer, and the search for the key of a token |
//! | `jws` | [`Jws`]: a parsed token, before it is verified |
//! | `signing_key` | [`SigningKey`]: a private key, read from PEM or generated |
//!
//! Encryption and symmetric algorithms are left out: MCP needs neither, and a verifier that knows no symmetric algorithm
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
