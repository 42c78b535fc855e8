//! Signature algorithms.

use std::fmt;

/// A signature algorithm, as named by the `alg` of a token ([RFC 7518](https://www.rfc-editor.org/rfc/rfc7518#section-3)).
///
/// All are asymmetric. `none` and the `HS` family are not among them, so no setting can allow them.
///
/// ```
/// use oxmcp_auth::jose::Algorithm;
///
/// assert_eq!(Algorithm::parse("ES256"), Some(Algorithm::Es256));
/// assert_eq!(Algorithm::parse("none"), None);
/// assert_eq!(Algorithm::EdDsa.as_str(), "EdDSA");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// RSA PKCS #1 v1.5 with SHA-256.
    Rs256,
    /// RSA PKCS #1 v1.5 with SHA-384.
    Rs384,
    /// RSA PKCS #1 v1.5 with SHA-512.
    Rs512,
    /// RSA PSS with SHA-256.
    Ps256,
    /// RSA PSS with SHA-384.
    Ps384,
    /// RSA PSS with SHA-512.
    Ps512,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// Ed25519; `Ed25519`, its name in [RFC 9864](https://www.rfc-editor.org/rfc/rfc9864), is read as well.
    EdDsa,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Self; 9] = [
        Self::Es256,
        Self::Es384,
        Self::EdDsa,
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
    ];

    /// Returns the algorithm with this name, if it is supported. Names are case-sensitive.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        if name == "Ed25519" {
            return Some(Self::EdDsa);
        }
        Self::ALL.into_iter().find(|it| it.as_str() == name)
    }

    /// Returns the name of the algorithm in tokens and metadata.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
        }
    }

    /// The names of all algorithms, for error messages.
    pub(crate) fn names() -> String {
        Self::ALL.map(Self::as_str).join(", ")
    }

    pub(crate) fn is_rsa(self) -> bool {
        !matches!(self, Self::Es256 | Self::Es384 | Self::EdDsa)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
