//! Params and results that extensions define.

use oxmcp_json::Text;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    error::EncodeError,
    lenient::{self, Reading},
    meta::{has_meta::HasMeta, object::Meta},
    result::encode::{append_members, append_meta, into_text, undo_on_error},
    revision::{projection::project::Project, version::Revision},
};

/// The payload of a message: the params or the result of a method.
///
/// It is implemented for the params and results of the protocol. For the methods of an extension, write
/// `impl Payload for Mine {}` for your own types, which must serialize to JSON objects.
///
/// ```
/// use oxmcp_protocol::Payload;
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct WindParams { turns: u32 }
///
/// impl Payload for WindParams {}
/// ```
pub trait Payload: Serialize + Send + Sync {
    /// The `_meta` of the payload. `None` if the type has no field for it.
    fn metadata(&mut self) -> Option<&mut Meta> {
        None
    }

    /// Fits the payload to the revision of the receiving peer: drops or rewrites members that this revision does not
    /// have.
    fn fit(&mut self, to: Revision) {
        let _ = to;
    }

    /// Reads the payload from JSON.
    ///
    /// # Errors
    /// If the JSON does not fit the type.
    fn from_json(json: &str) -> serde_json::Result<Self>
    where
        Self: DeserializeOwned,
    {
        serde_json::from_str(json)
    }

    /// Reads the payload from JSON that [`from_json`](Self::from_json) has refused: see [`lenient`].
    ///
    /// # Errors
    /// If the JSON cannot be read leniently either.
    fn from_json_leniently(json: &str) -> serde_json::Result<Reading<Self>>
    where
        Self: DeserializeOwned,
    {
        lenient::read(json)
    }

    /// Appends the payload as JSON.
    ///
    /// # Errors
    /// If the payload does not serialize to JSON.
    fn append_json(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        serde_json::to_writer(out, self)
    }
}

impl<T: HasMeta + Project + Send + Sync> Payload for T {
    fn metadata(&mut self) -> Option<&mut Meta> {
        self.meta_mut()
    }

    fn fit(&mut self, to: Revision) {
        self.project(to);
    }

    fn from_json(json: &str) -> serde_json::Result<Self>
    where
        Self: DeserializeOwned,
    {
        Self::read(json)
    }

    fn from_json_leniently(json: &str) -> serde_json::Result<Reading<Self>>
    where
        Self: DeserializeOwned,
    {
        Self::read_leniently(json)
    }

    fn append_json(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        self.write(out)
    }
}

/// Appends a result as [`encode_result`](crate::result::encode::encode_result) does, also for types of other crates. A
/// `resultType` and a `_meta` that the result itself has are kept.
///
/// # Errors
/// If the result does not serialize to JSON, or not to an object. Then nothing is appended.
pub fn encode_payload<R: Payload>(
    out: &mut Vec<u8>,
    result: &mut R,
    to: Revision,
    server_info: Option<&str>,
) -> Result<(), EncodeError> {
    result.fit(to);
    let modern = to.has_result_types();
    let server_info = server_info.filter(|_| modern);
    if let (Some(meta), Some(info)) = (result.metadata(), server_info) {
        add_server_info(meta, info);
    }
    let mut written = Vec::new();
    result.append_json(&mut written)?;
    append_written(out, written, modern, server_info)
}

fn add_server_info(meta: &mut Meta, info: &str) {
    if meta.get(Meta::SERVER_INFO).is_none() {
        let info: Value = serde_json::from_str(info).unwrap_or_default();
        meta.insert(Meta::SERVER_INFO, info);
    }
}

/// Appends a serialized result, and adds the members that a modern peer expects and the result lacks.
fn append_written(
    out: &mut Vec<u8>,
    written: Vec<u8>,
    modern: bool,
    server_info: Option<&str>,
) -> Result<(), EncodeError> {
    let written = &*into_text(written)?;
    let start = out.len();
    undo_on_error(out, start, |out| {
        let lacks = |name| {
            let mut members = Text::checked(written).members();
            modern && !members.any(|(key, _)| key.is_str(name))
        };
        out.push(b'{');
        if lacks("resultType") {
            out.extend_from_slice(br#""resultType":"complete""#);
        }
        let typed = out.len();
        if lacks("_meta") {
            append_meta(out, server_info, &Meta::default())?;
        }
        if typed == start + 1 && out.len() > typed {
            // Removes the comma before it.
            out.remove(typed);
        }
        append_members(out, |out| {
            out.extend_from_slice(written.as_bytes());
            Ok(())
        })
    })
}

/// Returns whether the `resultType` of a result is `name`.
#[must_use]
pub fn has_result_type(result: Text<'_>, name: &str) -> bool {
    let mut members = result.members();
    members.any(|(key, value)| key.is_str("resultType") && value.is_str(name))
}
