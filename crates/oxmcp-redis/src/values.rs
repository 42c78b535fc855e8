//! Encoding of stored values: sealed for their place, or plain if that was chosen.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use oxmcp::{Error, Result, SharedKeys, StoreKeys};

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
    /// Neither keys nor plain values were chosen: no value can be stored.
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

    /// The keys, also if they seal no values.
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

    /// Encodes a value for a place, which is its kind and its key.
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
                "what Redis has is not sealed, and this process has keys: all processes need the same keys, or all `.plaintext()`",
            )
            .into()),
            (Form::Plain, [SEALED, ..]) => Err(failure::unusable(
                "what Redis has is sealed, and this process has no keys: give it those of the others by `.keys(…)`",
            )
            .into()),
            _ => Err(Undecoded {
                error: Error::internal("what Redis has is none of this store's values"),
                is_damaged: true,
            }),
        }
    }
}

/// The error of a value that cannot be decoded.
#[derive(Debug)]
pub(crate) struct Undecoded {
    pub(crate) error: Error,
    /// Whether no process can decode the value, whatever its keys are.
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
        "the store has no keys: write `Redis::connect(url).await?.keys([StateKey::from_base64(text)?])`, where `openssl rand -base64 32` makes the text, \
         which is the same for all processes; or `.plaintext()`, where Redis may see all that is kept",
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
