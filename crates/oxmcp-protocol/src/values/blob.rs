//! Bytes that are encoded in base64 on the wire.

use std::{fmt, ops::Deref};

use base64::{Engine, display::Base64Display, prelude::BASE64_STANDARD};
use bytes::Bytes;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, Visitor},
};

use crate::lenient::BASE64;

/// Bytes that are sent in base64. Cloning does not copy them, and debug output does not print them.
///
/// ```
/// use oxmcp_protocol::Blob;
///
/// let blob = Blob::from(vec![1, 2, 3]);
/// assert_eq!(serde_json::to_string(&blob)?, r#""AQID""#);
/// assert_eq!(format!("{blob:?}"), "Blob(3 bytes)");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Blob(Bytes);

impl Blob {
    /// Returns the bytes, without copying them.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

impl Deref for Blob {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Blob {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Bytes> for Blob {
    fn from(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

impl From<Vec<u8>> for Blob {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl From<&[u8]> for Blob {
    fn from(bytes: &[u8]) -> Self {
        Self(Bytes::copy_from_slice(bytes))
    }
}

impl<const N: usize> From<&[u8; N]> for Blob {
    fn from(bytes: &[u8; N]) -> Self {
        Self(Bytes::copy_from_slice(bytes))
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blob({} bytes)", self.0.len())
    }
}

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Encoded piece by piece into the serializer's buffer, without an intermediate text that is a third longer than the
        // bytes.
        serializer.collect_str(&Base64Display::new(&self.0, &BASE64_STANDARD))
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BlobVisitor;

        impl<'de> Visitor<'de> for BlobVisitor {
            type Value = Blob;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes in base64")
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(
                self,
                deserializer: D,
            ) -> Result<Blob, D::Error> {
                deserializer.deserialize_str(self)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Blob, E> {
                BASE64_STANDARD
                    .decode(text)
                    .map(Blob::from)
                    .map_err(|error| E::custom(format_args!("not base64: {error}")))
            }
        }

        deserializer.deserialize_newtype_struct(BASE64, BlobVisitor)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn blob_bytes_round_trip(bytes: Vec<u8>) {
            let text = serde_json::to_string(&Blob::from(bytes.clone())).unwrap();
            prop_assert_eq!(&*serde_json::from_str::<Blob>(&text).unwrap(), &bytes[..]);
        }
    }

    #[test]
    fn invalid_base64_is_refused() {
        for bad in [r#""A""#, r#""AQ=""#, r#""A*==""#, "3"] {
            assert!(serde_json::from_str::<Blob>(bad).is_err(), "{bad}");
        }
    }
}
