//! The cipher of credentials that lie in files, with a key that lies elsewhere.
//!
//! What is sealed is, in base64url: the nonce (24 bytes), and the text, encrypted with XChaCha20-Poly1305 (with a tag of 16 bytes at
//! its end). The key that it is kept under is authenticated along with it, so that no file opens in the place of another one.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chacha20poly1305::{
    Key, KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use oxmcp_auth::{Secret, client::CredentialKey};

use super::login_files::digest_of;
use crate::error::{Error, Result};

/// Bytes of a key.
pub(super) const KEY: usize = 32;
const NONCE: usize = 24;

/// Random bytes, of the operating system.
pub(super) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    let filled = getrandom::fill(&mut bytes);
    filled.map_err(|error| {
        Error::internal(format!(
            "the operating system gives no randomness to seal credentials with: {error}"
        ))
    })?;
    Ok(bytes)
}

/// Seals a text that is kept under a key.
pub(super) fn seal(secret: [u8; KEY], key: &CredentialKey, text: &Secret) -> Result<Secret> {
    let nonce = random::<NONCE>()?;
    let payload = Payload {
        msg: text.expose().as_bytes(),
        aad: &digest_of(key),
    };
    let sealed = XChaCha20Poly1305::new(&Key::from(secret)).encrypt(&XNonce::from(nonce), payload);
    let sealed = sealed.map_err(|_| Error::internal("credentials cannot be sealed"))?;
    let mut bytes = nonce.to_vec();
    bytes.extend(sealed);
    Ok(Secret::new(BASE64_URL_SAFE_NO_PAD.encode(bytes)))
}

/// Opens what was sealed with this secret, for this key; nothing else.
pub(super) fn open(secret: [u8; KEY], key: &CredentialKey, sealed: &Secret) -> Option<Secret> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(sealed.expose()).ok()?;
    let (nonce, msg) = bytes.split_first_chunk::<NONCE>()?;
    let aad = &digest_of(key);
    let cipher = XChaCha20Poly1305::new(&Key::from(secret));
    let text = cipher
        .decrypt(&XNonce::from(*nonce), Payload { msg, aad })
        .ok()?;
    String::from_utf8(text).ok().map(Secret::new)
}
