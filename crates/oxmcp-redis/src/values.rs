//! Encoding of stored values: sealed and bound to their key in Redis, or plain if that was chosen.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use oxmcp::{
    Error, Result,
    keys::{SharedKeys, StoreKeys},
};

use crate::failure;

/// The first byte of a sealed value, and of a plain one.
const SEALED: u8 = b's';
const PLAIN: u8 = b'p';

/// The encoding of stored values. A change of one clone applies to all.
#[derive(Clone)]
pub(crate) struct Values {
    keys: SharedKeys,
    is_plain: Arc<AtomicBool>,
}

enum Form {
    /// Neither keys nor `plaintext` were set: no value can be stored.
    Unknown,
    Sealed(StoreKeys),
    Plain,
}

impl Values {
    pub(crate) fn unknown() -> Self {
        Self {
            keys: SharedKeys::new([]),
            is_plain: Arc::default(),
        }
    }

    /// The keys, even if values are plain.
    pub(crate) fn keys(&self) -> &SharedKeys {
        &self.keys
    }

    /// Leaves values plain, whether there are keys or not.
    pub(crate) fn leave_plain(&self) {
        self.is_plain.store(true, Ordering::Relaxed);
    }

    fn form(&self) -> Form {
        if self.is_plain.load(Ordering::Relaxed) {
            return Form::Plain;
        }
        let keys = self.keys.store();
        match keys.is_empty() {
            true => Form::Unknown,
            false => Form::Sealed(keys),
        }
    }

    /// Encodes a value for a place, which consists of its kind and its key.
    pub(crate) fn encode(&self, kind: &str, key: &str, value: &[u8]) -> Result<Vec<u8>> {
        Ok(match self.form() {
            Form::Unknown => return Err(without_keys()),
            Form::Plain => [&[PLAIN], value].concat(),
            Form::Sealed(keys) => [&[SEALED], &*keys.seal(&place(kind, key), value)?].concat(),
        })
    }

    /// Decodes the value that is stored at a place.
    pub(crate) fn decode(&self, kind: &str, key: &str, kept: &[u8]) -> Result<Vec<u8>, Undecoded> {
        match (self.form(), kept) {
            (Form::Unknown, _) => Err(without_keys().into()),
            (Form::Sealed(keys), [SEALED, sealed @ ..]) => keys
                .open(&place(kind, key), sealed)
                .map_err(|error| Undecoded {
                    error,
                    is_damaged: !keys.is_foreign(sealed),
                }),
            (Form::Plain, [PLAIN, plain @ ..]) => Ok(plain.to_vec()),
            (Form::Sealed(_), [PLAIN, ..]) => Err(failure::unusable(
                "value in Redis is not encrypted, but this process has keys; use the same keys in all processes, or `.plaintext()` in all",
            )
            .into()),
            (Form::Plain, [SEALED, ..]) => Err(failure::unusable(
                "value in Redis is encrypted, but this process has no keys; pass the keys of the other processes to `.keys(…)`",
            )
            .into()),
            _ => Err(Undecoded {
                error: Error::internal("unexpected value in Redis: not written by this store"),
                is_damaged: true,
            }),
        }
    }
}

/// The error of a value that cannot be decoded.
#[derive(Debug)]
pub(crate) struct Undecoded {
    pub(crate) error: Error,
    /// Whether no process can decode the value, regardless of its keys.
    pub(crate) is_damaged: bool,
}

impl From<Error> for Undecoded {
    fn from(error: Error) -> Self {
        Self {
            error,
            is_damaged: false,
        }
    }
}

impl From<Undecoded> for Error {
    fn from(undecoded: Undecoded) -> Self {
        undecoded.error
    }
}

fn place<'a>(kind: &'a str, key: &'a str) -> [&'a [u8]; 2] {
    [kind.as_bytes(), key.as_bytes()]
}

fn without_keys() -> Error {
    failure::unusable(
        "store has no keys; call `.keys([StateKey::from_base64(text)?])` with the output of `openssl rand -base64 32`, the same in \
         all processes, or `.plaintext()` to store data unencrypted",
    )
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.form() {
            Form::Unknown => "Values(without keys)",
            Form::Sealed(_) => "Values(sealed)",
            Form::Plain => "Values(plain)",
        })
    }
}
