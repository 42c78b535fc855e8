//! Public keys, as JSON.

use ring::{
    digest::{SHA256, digest},
    signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
        RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
        RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
        UnparsedPublicKey,
    },
};
use serde::{Deserialize, Serialize};

use super::{algorithm::Algorithm, base64url};
use crate::error::{AuthError, Result};

/// A public key ([RFC 7517](https://www.rfc-editor.org/rfc/rfc7517)): RSA from 2048 to 8192 bits, P-256, P-384 or Ed25519.
///
/// ```
/// use oxmcp_auth::jose::{Algorithm, Jwk, SigningKey};
///
/// let key = SigningKey::generate(Algorithm::Es256)?;
/// let public = Jwk::from_json(&serde_json::to_string(key.public_jwk()).unwrap())?;
/// assert_eq!(public.thumbprint(), key.public_jwk().thumbprint());
/// # Ok::<(), oxmcp_auth::AuthError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jwk {
    material: Material,
    key_id: Option<String>,
    algorithm: Option<Algorithm>,
}

/// The parts of a public key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Material {
    /// Modulus and exponent, big-endian without leading zeros.
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// A point as 0x04, x, y.
    Ec {
        curve: Curve,
        point: Vec<u8>,
    },
    Ed25519 {
        x: Vec<u8>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Curve {
    P256,
    P384,
}

impl Curve {
    fn name(self) -> &'static str {
        match self {
            Self::P256 => "P-256",
            Self::P384 => "P-384",
        }
    }

    /// The number of bytes of a coordinate.
    fn size(self) -> usize {
        match self {
            Self::P256 => 32,
            Self::P384 => 48,
        }
    }
}

/// The members of a key that are read. A duplicate is a parse error. The private member `d` is read so that a private key that
/// was published by mistake is refused.
#[derive(Deserialize)]
pub(crate) struct Wire {
    kty: String,
    #[serde(rename = "use")]
    usage: Option<String>,
    key_ops: Option<Vec<String>>,
    alg: Option<String>,
    kid: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
    d: Option<serde::de::IgnoredAny>,
}

/// The members of a key that is written. Those of a thumbprint are first, in the alphabetical order that it requires.
#[derive(Default, Serialize)]
struct Written<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    crv: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    e: Option<String>,
    kty: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    n: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    x: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    y: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kid: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alg: Option<&'a str>,
    #[serde(rename = "use", skip_serializing_if = "Option::is_none")]
    usage: Option<&'a str>,
}

impl Jwk {
    /// Parses a key.
    ///
    /// # Errors
    ///
    /// If it is not JSON, is not a signing key of a supported type, or has a private part.
    pub fn from_json(json: &str) -> Result<Self> {
        let wire = serde_json::from_str(json)
            .map_err(|error| AuthError::malformed(format!("invalid JSON Web Key: {error}")))?;
        Self::from_wire(wire)
    }

    pub(crate) fn from_wire(wire: Wire) -> Result<Self> {
        if wire.d.is_some() {
            return Err(AuthError::malformed(
                "key contains its private part (`d`); replace the key, and publish only the public part",
            ));
        }
        let operations = wire.key_ops.as_deref();
        let is_for_signatures = wire.usage.as_deref().is_none_or(|it| it == "sig")
            && operations.is_none_or(|all| all.iter().any(|it| it == "verify"));
        if !is_for_signatures {
            return Err(AuthError::malformed(
                "key is not for signatures, according to its `use` or `key_ops`",
            ));
        }
        let material = Material::from_wire(&wire)?;
        let algorithm = wire.alg.as_deref().map(|name| {
            let known = Algorithm::parse(name).filter(|it| material.takes(*it));
            known.ok_or_else(|| {
                AuthError::malformed(
                    "invalid `alg` of the key: unknown, or for another type of key",
                )
            })
        });
        Ok(Self {
            material,
            key_id: wire.kid,
            algorithm: algorithm.transpose()?,
        })
    }

    pub(crate) fn new(material: Material, algorithm: Algorithm) -> Self {
        Self {
            material,
            key_id: None,
            algorithm: Some(algorithm),
        }
    }

    pub(crate) fn set_key_id(&mut self, key_id: String) {
        self.key_id = Some(key_id);
    }

    pub(crate) fn set_algorithm(&mut self, algorithm: Algorithm) {
        self.algorithm = Some(algorithm);
    }

    /// Returns the `kid` of the key, by which tokens name it.
    #[must_use]
    pub fn key_id(&self) -> Option<&str> {
        self.key_id.as_deref()
    }

    /// Returns the only algorithm that the key is for, if it names one.
    #[must_use]
    pub fn algorithm(&self) -> Option<Algorithm> {
        self.algorithm
    }

    /// Returns the SHA-256 thumbprint of the key in base64url ([RFC 7638](https://www.rfc-editor.org/rfc/rfc7638)), which does
    /// not depend on `kid`, `alg` and `use`.
    #[must_use]
    pub fn thumbprint(&self) -> String {
        let json = serde_json::to_vec(&self.material.written()).unwrap_or_default();
        base64url::encode(digest(&SHA256, &json))
    }

    /// Whether a signature by this algorithm can be from this key.
    pub(crate) fn takes(&self, algorithm: Algorithm) -> bool {
        self.algorithm.is_none_or(|it| it == algorithm) && self.material.takes(algorithm)
    }

    /// Whether the signature over the message is from this key, by this algorithm.
    pub(crate) fn has_signed(
        &self,
        algorithm: Algorithm,
        message: &[u8],
        signature: &[u8],
    ) -> bool {
        if !self.takes(algorithm) {
            return false;
        }
        match (&self.material, algorithm) {
            (Material::Ec { point, .. }, Algorithm::Es256) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            (Material::Ec { point, .. }, Algorithm::Es384) => {
                UnparsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, point).verify(message, signature)
            }
            (Material::Ed25519 { x }, Algorithm::EdDsa) => {
                UnparsedPublicKey::new(&ED25519, x).verify(message, signature)
            }
            (Material::Rsa { n, e }, _) => match rsa_parameters(algorithm) {
                Some(parameters) => {
                    RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
                }
                None => return false,
            },
            _ => return false,
        }
        .is_ok()
    }
}

/// Writes the key as it is published: with `kid` and `alg`, if it has them, and `use`.
impl Serialize for Jwk {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut written = self.material.written();
        written.kid = self.key_id();
        written.alg = self.algorithm.map(Algorithm::as_str);
        written.usage = Some("sig");
        written.serialize(serializer)
    }
}

impl Material {
    fn from_wire(wire: &Wire) -> Result<Self> {
        let part = |name: &str, value: &Option<String>| {
            let bytes = value.as_deref().and_then(base64url::decode);
            bytes.ok_or_else(|| {
                AuthError::malformed(format!(
                    "invalid `{name}` of the key: missing, or not base64url"
                ))
            })
        };
        match (wire.kty.as_str(), wire.crv.as_deref()) {
            ("RSA", _) => Self::rsa(&part("n", &wire.n)?, &part("e", &wire.e)?),
            ("EC", Some("P-256")) => {
                Self::ec(Curve::P256, &part("x", &wire.x)?, &part("y", &wire.y)?)
            }
            ("EC", Some("P-384")) => {
                Self::ec(Curve::P384, &part("x", &wire.x)?, &part("y", &wire.y)?)
            }
            ("OKP", Some("Ed25519")) => {
                let x = part("x", &wire.x)?;
                if x.len() == 32 {
                    Ok(Self::Ed25519 { x })
                } else {
                    Err(AuthError::malformed(
                        "invalid `x` of the key: Ed25519 needs 32 bytes",
                    ))
                }
            }
            _ => Err(AuthError::malformed(
                "unsupported type of key; use RSA, EC with P-256 or P-384, or OKP with Ed25519",
            )),
        }
    }

    /// An RSA key. Leading zeros, which some issuers write, are dropped.
    pub(crate) fn rsa(n: &[u8], e: &[u8]) -> Result<Self> {
        let trimmed = |bytes: &[u8]| {
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            bytes.iter().skip(zeros).copied().collect::<Vec<_>>()
        };
        let (n, e) = (trimmed(n), trimmed(e));
        if !(256..=1024).contains(&n.len()) {
            return Err(AuthError::malformed(format!(
                "unsupported RSA key of {} bits; use 2048 to 8192 bits",
                n.len() * 8
            )));
        }
        Ok(Self::Rsa { n, e })
    }

    fn ec(curve: Curve, x: &[u8], y: &[u8]) -> Result<Self> {
        if x.len() != curve.size() || y.len() != curve.size() {
            return Err(AuthError::malformed(format!(
                "invalid `x` or `y` of the key: {} needs {} bytes each",
                curve.name(),
                curve.size()
            )));
        }
        let point = [&[4], x, y].concat();
        Ok(Self::Ec { curve, point })
    }

    fn takes(&self, algorithm: Algorithm) -> bool {
        match self {
            Self::Rsa { .. } => algorithm.is_rsa(),
            Self::Ec {
                curve: Curve::P256, ..
            } => algorithm == Algorithm::Es256,
            Self::Ec {
                curve: Curve::P384, ..
            } => algorithm == Algorithm::Es384,
            Self::Ed25519 { .. } => algorithm == Algorithm::EdDsa,
        }
    }

    /// The members of which a thumbprint is made.
    fn written(&self) -> Written<'_> {
        match self {
            Self::Rsa { n, e } => Written {
                kty: "RSA",
                n: Some(base64url::encode(n)),
                e: Some(base64url::encode(e)),
                ..Written::default()
            },
            Self::Ec { curve, point } => {
                let coordinates = point.get(1..).unwrap_or_default();
                let (x, y) = coordinates.split_at(coordinates.len() / 2);
                Written {
                    kty: "EC",
                    crv: Some(curve.name()),
                    x: Some(base64url::encode(x)),
                    y: Some(base64url::encode(y)),
                    ..Written::default()
                }
            }
            Self::Ed25519 { x } => Written {
                kty: "OKP",
                crv: Some("Ed25519"),
                x: Some(base64url::encode(x)),
                ..Written::default()
            },
        }
    }
}

fn rsa_parameters(algorithm: Algorithm) -> Option<&'static RsaParameters> {
    match algorithm {
        Algorithm::Rs256 => Some(&RSA_PKCS1_2048_8192_SHA256),
        Algorithm::Rs384 => Some(&RSA_PKCS1_2048_8192_SHA384),
        Algorithm::Rs512 => Some(&RSA_PKCS1_2048_8192_SHA512),
        Algorithm::Ps256 => Some(&RSA_PSS_2048_8192_SHA256),
        Algorithm::Ps384 => Some(&RSA_PSS_2048_8192_SHA384),
        Algorithm::Ps512 => Some(&RSA_PSS_2048_8192_SHA512),
        Algorithm::Es256 | Algorithm::Es384 | Algorithm::EdDsa => None,
    }
}
