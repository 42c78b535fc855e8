//! Tokens that were verified lately, by their hashes.

use std::{collections::HashMap, sync::Arc};

use ring::digest::{Context, Digest, SHA256};

use super::{refusal::Refusal, verified_token::VerifiedToken};
use crate::{bounded_map::BoundedMap, error::AuthError, jose::base64url, time::UnixTime};

/// Valid tokens that are kept: at some 2 KiB each that is 20 MiB.
const MAX_VALID: usize = 10_000;

/// Refused tokens that are kept.
const MAX_REFUSED: usize = 1_000;

/// Tokens that are refused though they are valid.
const MAX_REVOKED: usize = 10_000;

/// Seconds that a refusal is kept for.
const REFUSED_FOR: u64 = 1;

/// The hashes of a token, which are all that is kept of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TokenHash {
    whole: [u8; 32],
    /// Without the signature, where it is a JSON Web Token: whoever has one by ECDSA can write another signature that is as
    /// good.
    unsigned: [u8; 32],
}

impl TokenHash {
    pub(super) fn of(token: &str) -> Self {
        let signature = signature(token);
        let (unsigned, signature) = token.split_at(token.len() - signature.len());
        let mut context = Context::new(&SHA256);
        context.update(unsigned.as_bytes());
        let unsigned = bytes(&context.clone().finish());
        context.update(signature.as_bytes());
        let whole = bytes(&context.finish());
        Self { whole, unsigned }
    }
}

fn bytes(hash: &Digest) -> [u8; 32] {
    hash.as_ref().try_into().unwrap_or_default()
}

/// The signature of a JSON Web Token: nothing where it is none, as one that only has dots in it.
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

/// Verified tokens. The oldest give way to new ones.
#[derive(Debug)]
pub(super) struct TokenCache {
    valid: BoundedMap<TokenHash, Valid>,
    refused: BoundedMap<TokenHash, (Refusal, UnixTime)>,
    /// Without their signatures, with the time from which on they would be refused in any case.
    revoked: HashMap<[u8; 32], UnixTime>,
}

#[derive(Debug)]
struct Valid {
    token: Arc<VerifiedToken>,
    until: UnixTime,
    /// The thumbprint of the key that has signed it.
    key: Option<String>,
}

impl TokenCache {
    /// What was found of a token, as long as that holds.
    pub(super) fn get(
        &self,
        hash: &TokenHash,
        now: UnixTime,
    ) -> Option<Result<Arc<VerifiedToken>, Refusal>> {
        // Before all else: it may have been found valid meanwhile.
        if let Some(refusal) = self.revocation(hash) {
            return Some(Err(refusal));
        }
        let valid = self.valid.get(hash).filter(|valid| now < valid.until);
        if let Some(valid) = valid {
            return Some(Ok(Arc::clone(&valid.token)));
        }
        let (refusal, until) = self.refused.get(hash)?;
        (now < *until).then(|| Err(refusal.clone()))
    }

    /// Whether a token was valid when it was verified last, be that long ago.
    pub(super) fn was_valid(&self, hash: &TokenHash) -> bool {
        self.valid.contains(hash)
    }

    /// The refusal of a token that was revoked.
    pub(super) fn revocation(&self, hash: &TokenHash) -> Option<Refusal> {
        self.is_revoked(hash)
            .then(|| Refusal::invalid(AuthError::invalid_token("the token was revoked")))
    }

    fn is_revoked(&self, hash: &TokenHash) -> bool {
        self.revoked.contains_key(&hash.unsigned)
    }

    /// Keeps a valid token until that time, unless it was revoked.
    pub(super) fn insert(
        &mut self,
        hash: TokenHash,
        token: Arc<VerifiedToken>,
        until: UnixTime,
        key: Option<String>,
    ) {
        if self.is_revoked(&hash) {
            return;
        }
        self.refused.remove(&hash);
        self.valid.insert(hash, Valid { token, until, key });
    }

    /// Keeps a refusal for a second. That nothing can be found out now makes no token one that was never valid.
    pub(super) fn refuse(&mut self, hash: TokenHash, refusal: Refusal, now: UnixTime) {
        if !refusal.is_unavailable() {
            self.valid.remove(&hash);
        }
        self.refused.insert(hash, (refusal, now.plus(REFUSED_FOR)));
    }

    /// Refuses a token from now on, until that time. Where too many are revoked, those go first that end first.
    pub(super) fn revoke(&mut self, hash: TokenHash, until: UnixTime, now: UnixTime) {
        self.valid.remove(&hash);
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

    /// Drops the tokens of an issuer that were signed by a key that it no longer has.
    pub(super) fn retain_keys(&mut self, issuer: &str, has: impl Fn(&str) -> bool) {
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
