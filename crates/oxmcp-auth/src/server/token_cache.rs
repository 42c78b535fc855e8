//! Cache of tokens that were verified recently, by their hashes.

use std::{collections::HashMap, sync::Arc};

use ring::digest::{SHA256, digest};

use super::{refusal::Refusal, verified_token::VerifiedToken};
use crate::{bounded_map::BoundedMap, error::AuthError, jose::base64url, time::UnixTime};

/// The most valid tokens that are kept: at about 2 KiB each these are 20 MiB.
const MAX_VALID: usize = 10_000;

/// The most refused tokens that are kept.
const MAX_REFUSED: usize = 1_000;

/// The most revoked tokens that are kept, which are refused though they may be valid.
const MAX_REVOKED: usize = 10_000;

/// Seconds for which a refusal is kept.
const REFUSED_FOR: u64 = 1;

/// The hash by which a token is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WholeHash([u8; 32]);

impl WholeHash {
    pub(crate) fn of(token: &[u8]) -> Self {
        Self(hash(token))
    }
}

/// The hashes of a token. The token itself is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TokenHash {
    whole: WholeHash,
    /// The hash without the signature, if the token is a JSON Web Token: from an ECDSA signature anyone can derive another
    /// one that is valid, too.
    unsigned: [u8; 32],
}

impl TokenHash {
    pub(crate) fn of(token: &str) -> Self {
        let unsigned = token.strip_suffix(signature(token)).unwrap_or(token);
        Self {
            whole: WholeHash::of(token.as_bytes()),
            unsigned: hash(unsigned.as_bytes()),
        }
    }
}

fn hash(text: &[u8]) -> [u8; 32] {
    let hash = digest(&SHA256, text);
    hash.as_ref().try_into().unwrap_or_default()
}

/// The signature of a JSON Web Token; empty for other tokens, also if they contain dots.
fn signature(token: &str) -> &str {
    let mut parts = token.split('.');
    let (Some(header), Some(_), Some(signature), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return "";
    };
    let header = base64url::decode(header).unwrap_or_default();
    if header.trim_ascii_start().starts_with(b"{") {
        signature
    } else {
        ""
    }
}

/// The results for verified tokens. New entries evict the oldest.
#[derive(Debug)]
pub(crate) struct TokenCache {
    /// The valid tokens, none of which is revoked.
    valid: BoundedMap<WholeHash, Valid>,
    refused: BoundedMap<WholeHash, (Refusal, UnixTime)>,
    /// The revoked tokens, by their hashes without the signature, with the time from which they would be refused anyway.
    revoked: HashMap<[u8; 32], UnixTime>,
}

#[derive(Debug)]
struct Valid {
    token: Arc<VerifiedToken>,
    until: UnixTime,
    /// The thumbprint of the key that signed the token.
    key: Option<String>,
    /// The hash without the signature, as in [`TokenHash`].
    unsigned: [u8; 32],
}

impl TokenCache {
    /// A token that was found valid, until that result expires. Most requests need only this lookup.
    pub(crate) fn valid(&self, hash: &WholeHash, now: UnixTime) -> Option<&Arc<VerifiedToken>> {
        let valid = self.valid.get(hash).filter(|valid| now < valid.until);
        valid.map(|valid| &valid.token)
    }

    /// The cached result for a token, until it expires.
    pub(crate) fn get(
        &self,
        hash: &TokenHash,
        now: UnixTime,
    ) -> Option<Result<Arc<VerifiedToken>, Refusal>> {
        if let Some(refusal) = self.revocation(hash) {
            return Some(Err(refusal));
        }
        if let Some(token) = self.valid(&hash.whole, now) {
            return Some(Ok(Arc::clone(token)));
        }
        let (refusal, until) = self.refused.get(&hash.whole)?;
        (now < *until).then(|| Err(refusal.clone()))
    }

    /// Whether a token was valid when it was last verified, even if that was long ago.
    pub(crate) fn was_valid(&self, hash: &TokenHash) -> bool {
        self.valid.contains(&hash.whole)
    }

    /// The refusal of a token that was revoked.
    pub(crate) fn revocation(&self, hash: &TokenHash) -> Option<Refusal> {
        self.is_revoked(hash)
            .then(|| Refusal::invalid(AuthError::invalid_token("token was revoked")))
    }

    fn is_revoked(&self, hash: &TokenHash) -> bool {
        self.revoked.contains_key(&hash.unsigned)
    }

    /// Keeps a valid token until the time `until`, unless it was revoked.
    pub(crate) fn insert(
        &mut self,
        hash: TokenHash,
        token: Arc<VerifiedToken>,
        until: UnixTime,
        key: Option<String>,
    ) {
        if self.is_revoked(&hash) {
            return;
        }
        self.refused.remove(&hash.whole);
        let valid = Valid {
            token,
            until,
            key,
            unsigned: hash.unsigned,
        };
        self.valid.insert(hash.whole, valid);
    }

    /// Keeps a refusal for a second. A token that was valid stays known as such if the refusal only says that tokens cannot be
    /// verified right now.
    pub(crate) fn refuse(&mut self, hash: TokenHash, refusal: Refusal, now: UnixTime) {
        if !refusal.is_unavailable() {
            self.valid.remove(&hash.whole);
        }
        self.refused
            .insert(hash.whole, (refusal, now.plus(REFUSED_FOR)));
    }

    /// Refuses a token from now on, until the time `until`. If too many tokens are revoked, the one that expires first is
    /// evicted.
    pub(crate) fn revoke(&mut self, hash: TokenHash, until: UnixTime, now: UnixTime) {
        self.valid.retain(|it| it.unsigned != hash.unsigned);
        if self.revoked.len() >= MAX_REVOKED {
            self.revoked.retain(|_, until| *until > now);
        }
        if self.revoked.len() >= MAX_REVOKED {
            let first = self.revoked.iter().min_by_key(|(_, until)| **until);
            if let Some(hash) = first.map(|(hash, _)| *hash) {
                self.revoked.remove(&hash);
            }
        }
        self.revoked.insert(hash.unsigned, until);
    }

    /// Drops the tokens of an issuer that were signed by a key that the issuer no longer has.
    pub(crate) fn retain_keys(&mut self, issuer: &str, has: impl Fn(&str) -> bool) {
        self.valid.retain(|valid| {
            let is_of_it = valid.token.issuer == issuer;
            !is_of_it || valid.key.as_deref().is_none_or(&has)
        });
    }
}

impl Default for TokenCache {
    fn default() -> Self {
        Self {
            valid: BoundedMap::new(MAX_VALID),
            refused: BoundedMap::new(MAX_REFUSED),
            revoked: HashMap::new(),
        }
    }
}
