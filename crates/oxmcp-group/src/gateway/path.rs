//! The path of gateways that a request or an entry of a list has passed, by which loops are noticed.

use std::fmt::Write;

use oxmcp::{Error, Result, protocol::Meta};
use serde_json::Value;

/// The key of the path in `_meta`.
pub(super) const KEY: &str = "dev.oxmcp/gateways";

/// The maximum number of gateways in a row. More than a few are a loop, or a mistake.
pub(super) const MAX_HOPS: usize = 8;

/// The random name of a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GatewayId(String);

impl GatewayId {
    /// # Errors
    /// If the operating system provides no random bytes.
    pub(super) fn random() -> Result<Self> {
        let mut text = String::new();
        for byte in random::<8>()? {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        Ok(Self(text))
    }

    /// The path of a request or an entry behind this gateway.
    ///
    /// # Errors
    /// If it has passed this gateway before, or too many.
    pub(super) fn extend(&self, meta: &Meta) -> Result<Value> {
        let before = meta.get(KEY).and_then(Value::as_array);
        let mut path: Vec<Value> = before.cloned().unwrap_or_default();
        if path.iter().any(|it| it.as_str() == Some(&self.0)) {
            return Err(Error::invalid_request(
                "the gateway was reached through itself; remove the loop from its servers",
            ));
        }
        if path.len() >= MAX_HOPS {
            return Err(Error::invalid_request(format!(
                "more than {MAX_HOPS} gateways in a row; connect to the server through fewer"
            )));
        }
        path.push(self.0.clone().into());
        Ok(path.into())
    }

    /// The path of requests that begin here.
    pub(super) fn start(&self) -> Value {
        Value::Array(vec![self.0.clone().into()])
    }
}

/// Random bytes.
///
/// # Errors
/// If the operating system provides none.
pub(super) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| {
        Error::internal(format!(
            "could not get random bytes from the operating system: {error}"
        ))
    })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_and_long_paths_are_refused() {
        let (own, other) = (GatewayId::random().unwrap(), GatewayId::random().unwrap());
        assert_ne!(own, other);
        let mut meta = Meta::default();
        meta.insert(KEY, other.start());
        let path = own.extend(&meta).unwrap();
        assert_eq!(path.as_array().unwrap().len(), 2);
        meta.insert(KEY, path);
        let error = own.extend(&meta).unwrap_err().to_string();
        assert!(error.contains("reached through itself"), "{error}");
        let many: Vec<Value> = (0..MAX_HOPS).map(Value::from).collect();
        meta.insert(KEY, many);
        let error = own.extend(&meta).unwrap_err().to_string();
        assert!(error.contains("more than 8 gateways"), "{error}");
        meta.insert(KEY, "a client can send anything");
        assert!(own.extend(&meta).is_ok());
    }
}
