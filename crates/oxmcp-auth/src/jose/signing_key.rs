//! Private keys.

use std::fmt;

use ring::{
    pkcs8::Document,
    rand::SystemRandom,
    rsa::PublicKeyComponents,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
        Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512,
        RSA_PSS_SHA256, RSA_PSS_SHA384, RSA_PSS_SHA512, RsaEncoding, RsaKeyPair,
    },
};
use rustls_pki_types::{PrivateKeyDer, pem::PemObject};
use serde::Serialize;

use super::{
    algorithm::Algorithm,
    base64url,
    jwk::{Curve, Jwk, Material},
};
use crate::error::{AuthError, Result};

/// A private key that signs tokens: client assertions and proofs.
///
/// ```
/// use oxmcp_auth::jose::{Algorithm, SigningKey};
///
/// let key = SigningKey::generate(Algorithm::Es256)?.with_key_id("2026");
/// let token = key.sign("JWT", &serde_json::json!({"sub": "my-client"}))?;
/// assert_eq!(token.split('.').count(), 3);
/// # Ok::<(), oxmcp_auth::AuthError>(())
/// ```
pub struct SigningKey {
    algorithm: Algorithm,
    pair: Pair,
    public: Jwk,
}

enum Pair {
    Rsa(Box<RsaKeyPair>),
    Ec(Box<EcdsaKeyPair>),
    Ed25519(Box<Ed25519KeyPair>),
}

/// The header of a token.
#[derive(Serialize)]
struct Header<'a> {
    typ: &'a str,
    alg: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kid: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jwk: Option<&'a Jwk>,
}

impl SigningKey {
    /// Reads a private key from PEM: `PRIVATE KEY` (PKCS #8) with P-256, P-384, Ed25519 or RSA, or `RSA PRIVATE KEY`. It signs
    /// with ES256, ES384, EdDSA or RS256.
    ///
    /// # Errors
    ///
    /// If the PEM contains no such key, the key is encrypted, or an RSA key has less than 2048 bits.
    pub fn from_pem(pem: &str) -> Result<Self> {
        if pem.contains("ENCRYPTED") {
            return Err(AuthError::configuration(
                "private key is encrypted; decrypt it with `openssl pkcs8 -in key.pem -out plain.pem`",
            ));
        }
        let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| {
            AuthError::configuration(
                "no private key found in the PEM; expected `-----BEGIN PRIVATE KEY-----`",
            )
        })?;
        match &key {
            PrivateKeyDer::Pkcs8(der) => Self::from_pkcs8_der(der.secret_pkcs8_der()),
            PrivateKeyDer::Pkcs1(der) => RsaKeyPair::from_der(der.secret_pkcs1_der())
                .map_err(|error| AuthError::configuration(format!("invalid RSA key: {error}")))
                .and_then(Self::of_rsa),
            _ => Err(AuthError::configuration(
                "private key is not in PKCS #8; convert it with `openssl pkcs8 -topk8 -nocrypt -in key.pem`",
            )),
        }
    }

    /// Reads a private key from the DER of PKCS #8, as [`from_pem`](Self::from_pem) does.
    ///
    /// # Errors
    ///
    /// If it is not such a key.
    pub fn from_pkcs8_der(der: &[u8]) -> Result<Self> {
        let random = SystemRandom::new();
        let ec = |algorithm| EcdsaKeyPair::from_pkcs8(algorithm, der, &random);
        if let Ok(pair) = ec(&ECDSA_P256_SHA256_FIXED_SIGNING) {
            return Self::of_ec(Algorithm::Es256, pair);
        }
        if let Ok(pair) = ec(&ECDSA_P384_SHA384_FIXED_SIGNING) {
            return Self::of_ec(Algorithm::Es384, pair);
        }
        // Keys that openssl generates contain no public key, which the checked form requires.
        if let Ok(pair) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der) {
            return Ok(Self::of_ed25519(pair));
        }
        match RsaKeyPair::from_pkcs8(der) {
            Ok(pair) => Self::of_rsa(pair),
            Err(error) => Err(AuthError::configuration(format!(
                "unsupported private key: {error}; use EC on P-256 or P-384 with the public key included, Ed25519, or RSA with \
                 at least 2048 bits"
            ))),
        }
    }

    /// Generates a key, with randomness from the operating system.
    ///
    /// # Errors
    ///
    /// If the algorithm is one of RSA, whose keys can only be read, or if the operating system provides no randomness.
    pub fn generate(algorithm: Algorithm) -> Result<Self> {
        Self::from_pkcs8_der(Self::generate_pkcs8(algorithm)?.as_ref())
    }

    /// Generates a key as PKCS #8, the form in which it can be stored.
    pub(crate) fn generate_pkcs8(algorithm: Algorithm) -> Result<Document> {
        let random = SystemRandom::new();
        let no_randomness =
            |_| AuthError::configuration("could not get random bytes from the operating system");
        let generate_ec = |of| EcdsaKeyPair::generate_pkcs8(of, &random).map_err(no_randomness);
        match algorithm {
            Algorithm::Es256 => generate_ec(&ECDSA_P256_SHA256_FIXED_SIGNING),
            Algorithm::Es384 => generate_ec(&ECDSA_P384_SHA384_FIXED_SIGNING),
            Algorithm::EdDsa => Ed25519KeyPair::generate_pkcs8(&random).map_err(no_randomness),
            _ => Err(AuthError::configuration(
                "cannot generate RSA keys; use ES256, ES384 or EdDSA",
            )),
        }
    }

    /// Sets the algorithm with which the key signs. An RSA key can sign with any RSA algorithm.
    ///
    /// # Errors
    ///
    /// If the algorithm is for another type of key.
    pub fn with_algorithm(mut self, algorithm: Algorithm) -> Result<Self> {
        if algorithm != self.algorithm && !(algorithm.is_rsa() && self.algorithm.is_rsa()) {
            return Err(AuthError::configuration(format!(
                "key for {} cannot sign with {algorithm}",
                self.algorithm
            )));
        }
        self.algorithm = algorithm;
        self.public.set_algorithm(algorithm);
        Ok(self)
    }

    /// Sets the `kid` under which the key was published.
    #[must_use]
    pub fn with_key_id(mut self, key_id: impl Into<String>) -> Self {
        self.public.set_key_id(key_id.into());
        self
    }

    /// Returns the algorithm with which the key signs.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns the public key.
    #[must_use]
    pub fn public_jwk(&self) -> &Jwk {
        &self.public
    }

    /// Signs claims as a token with this `typ`, and with the `kid` if the key has one.
    ///
    /// # Errors
    ///
    /// If the claims cannot be serialized as JSON, or the operating system provides no randomness.
    pub fn sign<C: Serialize + ?Sized>(&self, typ: &str, claims: &C) -> Result<String> {
        self.compact(typ, self.public.key_id(), None, claims)
    }

    /// Signs claims as a token that contains the public key, as proofs do.
    pub(crate) fn sign_with_key<C: Serialize>(&self, typ: &str, claims: &C) -> Result<String> {
        self.compact(typ, None, Some(&self.public), claims)
    }

    fn compact<C: Serialize + ?Sized>(
        &self,
        typ: &str,
        kid: Option<&str>,
        jwk: Option<&Jwk>,
        claims: &C,
    ) -> Result<String> {
        let header = Header {
            typ,
            alg: self.algorithm.as_str(),
            kid,
            jwk,
        };
        let unwritten =
            |error| AuthError::configuration(format!("could not serialize the claims: {error}"));
        let header = serde_json::to_vec(&header).map_err(unwritten)?;
        let claims = serde_json::to_vec(claims).map_err(unwritten)?;
        let mut token = base64url::encode(header);
        token.push('.');
        token.push_str(&base64url::encode(claims));
        let signature = self.signature(token.as_bytes())?;
        token.push('.');
        token.push_str(&base64url::encode(signature));
        Ok(token)
    }

    fn signature(&self, message: &[u8]) -> Result<Vec<u8>> {
        let random = SystemRandom::new();
        let signature = match &self.pair {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                let encoding = rsa_encoding(self.algorithm);
                pair.sign(encoding, &random, message, &mut signature)
                    .map(|()| signature)
            }
            Pair::Ec(pair) => pair.sign(&random, message).map(|it| it.as_ref().to_vec()),
            Pair::Ed25519(pair) => Ok(pair.sign(message).as_ref().to_vec()),
        };
        // ring does not say why. Apart from randomness, only an RSA key that is inconsistent is known to fail.
        signature.map_err(|_| {
            AuthError::configuration(format!(
                "could not sign with the {} key: the key is damaged, or the operating system has no random bytes",
                self.algorithm
            ))
        })
    }

    fn of_ec(algorithm: Algorithm, pair: EcdsaKeyPair) -> Result<Self> {
        let curve = if algorithm == Algorithm::Es256 {
            Curve::P256
        } else {
            Curve::P384
        };
        let point = pair.public_key().as_ref().to_vec();
        Ok(Self {
            algorithm,
            public: Jwk::new(Material::Ec { curve, point }, algorithm),
            pair: Pair::Ec(Box::new(pair)),
        })
    }

    fn of_ed25519(pair: Ed25519KeyPair) -> Self {
        let x = pair.public_key().as_ref().to_vec();
        Self {
            algorithm: Algorithm::EdDsa,
            public: Jwk::new(Material::Ed25519 { x }, Algorithm::EdDsa),
            pair: Pair::Ed25519(Box::new(pair)),
        }
    }

    fn of_rsa(pair: RsaKeyPair) -> Result<Self> {
        let public = PublicKeyComponents::<Vec<u8>>::from(pair.public());
        let material = Material::rsa(&public.n, &public.e)?;
        Ok(Self {
            algorithm: Algorithm::Rs256,
            public: Jwk::new(material, Algorithm::Rs256),
            pair: Pair::Rsa(Box::new(pair)),
        })
    }
}

fn rsa_encoding(algorithm: Algorithm) -> &'static dyn RsaEncoding {
    match algorithm {
        Algorithm::Rs384 => &RSA_PKCS1_SHA384,
        Algorithm::Rs512 => &RSA_PKCS1_SHA512,
        Algorithm::Ps256 => &RSA_PSS_SHA256,
        Algorithm::Ps384 => &RSA_PSS_SHA384,
        Algorithm::Ps512 => &RSA_PSS_SHA512,
        _ => &RSA_PKCS1_SHA256,
    }
}

/// Leaves out the private key.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey")
            .field("algorithm", &self.algorithm)
            .field("key_id", &self.public.key_id())
            .finish_non_exhaustive()
    }
}
