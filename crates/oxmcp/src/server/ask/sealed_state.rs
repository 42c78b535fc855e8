//! Sealed state (`requestState`): the journal of a handler between two rounds, while the client keeps it.
//!
//! A token is the record as sealed JSON. It is bound to its request, and opens for no other request.
//!
//! Time and nonce are arguments: this module reads no clock and generates no randomness.
//!
//! See [server requirements](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr#server-requirements-basic-workflow).

use std::time::Duration;

use oxmcp_json::{Text, write_string};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::{
    error::{Error, Result},
    session::{
        handler::journal::JournalRecord,
        sealing::{self, Bound, KeyRing, NONCE, Refused, StateKey},
    },
};

/// The request that a token is bound to; the token opens for no other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding<'a> {
    pub(crate) server: &'a str,
    /// The caller, if the transport knows it.
    pub(crate) principal: Option<&'a str>,
    pub(crate) method: &'a str,
    /// The name of the tool or prompt, or the URI of the resource.
    pub(crate) target: &'a str,
    /// The arguments, as JSON.
    pub(crate) arguments: &'a str,
}

impl Binding<'_> {
    /// Calls a function with the purpose and the parts that a token is bound to.
    fn bound<R>(&self, then: impl FnOnce(Bound<'_>) -> R) -> R {
        let arguments = canonical(self.arguments);
        let known = [u8::from(self.principal.is_some())];
        then(Bound {
            purpose: b"oxmcp request state",
            parts: &[
                self.server.as_bytes(),
                &known,
                self.principal.unwrap_or_default().as_bytes(),
                self.method.as_bytes(),
                self.target.as_bytes(),
                arguments.as_bytes(),
            ],
        })
    }
}

/// The arguments in a form that does not depend on the order of members, since a client or an intermediary may serialize them
/// again. Everything else stays: a number keeps its text, which may be more precise than any numeric type, and duplicate
/// members all count.
fn canonical(arguments: &str) -> String {
    let Ok(checked) = serde_json::from_str::<&RawValue>(arguments) else {
        return arguments.to_owned();
    };
    let mut out = Vec::with_capacity(arguments.len());
    write_canonical(&mut out, Text::from(checked));
    String::from_utf8(out).unwrap_or_else(|_| arguments.to_owned())
}

/// Writes a value with its members sorted. The recursion is as deep as the value, whose depth was bounded when it was read from
/// the wire.
fn write_canonical(out: &mut Vec<u8>, value: Text<'_>) {
    match value.get().as_bytes().first() {
        Some(b'{') => {
            let members = value.members();
            let mut members: Vec<_> = members.map(|(key, it)| (key.as_str(), key, it)).collect();
            members.sort_by(|(one, ..), (other, ..)| one.cmp(other));
            out.push(b'{');
            for (index, (_, key, value)) in members.into_iter().enumerate() {
                separate(out, index);
                write_canonical(out, key);
                out.push(b':');
                write_canonical(out, value);
            }
            out.push(b'}');
        }
        Some(b'[') => {
            out.push(b'[');
            for (index, item) in value.items().enumerate() {
                separate(out, index);
                write_canonical(out, item);
            }
            out.push(b']');
        }
        _ => match value.as_str() {
            Some(string) => write_string(out, &string),
            None => out.extend_from_slice(value.get().as_bytes()),
        },
    }
}

fn separate(out: &mut Vec<u8>, index: usize) {
    if index > 0 {
        out.push(b',');
    }
}

/// The caller and the values that a state of a handler's own is bound to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnBinding<'a> {
    pub(crate) server: &'a str,
    /// The caller, if the transport knows it.
    pub(crate) principal: Option<&'a str>,
    pub(crate) values: &'a [&'a str],
}

impl OwnBinding<'_> {
    /// Calls a function with the purpose and the parts that a token is bound to.
    fn bound<R>(&self, then: impl FnOnce(Bound<'_>) -> R) -> R {
        let known = [u8::from(self.principal.is_some())];
        let principal = self.principal.unwrap_or_default();
        let mut parts = vec![self.server.as_bytes(), &known, principal.as_bytes()];
        parts.extend(self.values.iter().map(|it| it.as_bytes()));
        then(Bound {
            purpose: b"oxmcp state of a handler",
            parts: &parts,
        })
    }
}

/// A state that a handler writes itself.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct OwnState {
    /// The time at which its sealed form expires, in seconds since 1970.
    #[serde(rename = "x")]
    pub(crate) expires: u64,
    #[serde(rename = "s")]
    pub(crate) state: String,
}

/// Seals a record. `limit` is the maximum length of a token.
///
/// # Errors
/// If the token would be longer.
pub(crate) fn seal(
    record: &JournalRecord,
    binding: &Binding<'_>,
    key: &StateKey,
    nonce: [u8; NONCE],
    limit: usize,
) -> Result<String> {
    let plain = written(record)?;
    let token = binding.bound(|bound| sealing::seal(&plain, bound, key, nonce));
    within(token, limit, || biggest(record))
}

/// Seals a state that a handler writes itself, as [`seal`] does.
///
/// # Errors
/// As for [`seal`].
pub(crate) fn seal_own(
    state: &OwnState,
    binding: &OwnBinding<'_>,
    key: &StateKey,
    nonce: [u8; NONCE],
    limit: usize,
) -> Result<String> {
    let plain = written(state)?;
    let token = binding.bound(|bound| sealing::seal(&plain, bound, key, nonce));
    within(token, limit, String::new)
}

fn unsealed() -> Error {
    Error::internal("could not seal the state of the questions")
}

fn written(state: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(state).map_err(|error| unsealed().with_source(error))
}

/// A token that is short enough. `detail` describes the reason for its length.
fn within(token: Option<String>, limit: usize, detail: impl FnOnce() -> String) -> Result<String> {
    let token = token.ok_or_else(unsealed)?;
    let length = token.len();
    if length <= limit {
        return Ok(token);
    }
    let detail = detail();
    Err(Error::limit(format!(
        "request state too large: {length} bytes, and `Limits::max_request_state` is {limit}{detail}; \
         store large values in a database, and keep only their keys"
    )))
}

/// Opens a token, at `now` seconds since 1970.
///
/// # Errors
/// If the token is malformed or too long, was changed, was sealed for another request or with an unknown key, or has expired.
pub(crate) fn open(
    token: &str,
    binding: &Binding<'_>,
    keys: &KeyRing,
    now: u64,
    limit: usize,
) -> Result<JournalRecord, Refused> {
    let opened = binding.bound(|bound| opened(token, bound, keys, limit))?;
    unexpired(opened, now, |record: &JournalRecord| record.expires)
}

/// Opens a token of [`seal_own`], as [`open`] does.
///
/// # Errors
/// As for [`open`].
pub(crate) fn open_own(
    token: &str,
    binding: &OwnBinding<'_>,
    keys: &KeyRing,
    now: u64,
    limit: usize,
) -> Result<OwnState, Refused> {
    let opened = binding.bound(|bound| opened(token, bound, keys, limit))?;
    unexpired(opened, now, |state: &OwnState| state.expires)
}

fn opened<T: DeserializeOwned>(
    token: &str,
    bound: Bound<'_>,
    keys: &KeyRing,
    limit: usize,
) -> Result<T, Refused> {
    if token.len() > limit {
        return Err(Refused::TooLong);
    }
    let plain = sealing::open(token, bound, keys)?;
    serde_json::from_slice(&plain).map_err(|_| Refused::Malformed)
}

fn unexpired<T>(opened: T, now: u64, expires: impl FnOnce(&T) -> u64) -> Result<T, Refused> {
    match now < expires(&opened) {
        true => Ok(opened),
        false => Err(Refused::Expired),
    }
}

/// The expiry time of a state that is sealed now.
pub(crate) fn expiry(now: u64, after: Duration) -> u64 {
    now.saturating_add(after.as_secs())
}

/// Describes the largest part of a record.
fn biggest(record: &JournalRecord) -> String {
    let steps = record.steps.iter().map(|(key, value)| ("step", key, value));
    let answers = record.answers.iter();
    let answers = answers.map(|answer| ("answer", &answer.key, &answer.value));
    let biggest = steps
        .chain(answers)
        .max_by_key(|(_, _, value)| value.get().len());
    biggest.map_or_else(String::new, |(kind, key, value)| {
        let bytes = value.get().len();
        format!("; the largest part is {kind} {key:?} with {bytes} bytes")
    })
}
