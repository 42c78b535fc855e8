//! Writing messages. Each ends with a newline and holds no other, so that what is written here can go onto a
//! line-framed stream as it is.

use serde::Serialize;
use serde_json::value::RawValue;

use super::{ErrorObject, RequestId};

/// Appends a response. `result` is JSON.
pub(crate) fn write_result(out: &mut Vec<u8>, id: &RequestId, result: &RawValue) {
    let start = out.len();
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    id.write(out);
    out.extend_from_slice(br#","result":"#);
    out.extend_from_slice(result.get().as_bytes());
    finish(out, start);
}

/// Appends an error response. Without an id it answers a message whose id could not be read.
pub(crate) fn write_error(out: &mut Vec<u8>, id: Option<&RequestId>, error: &ErrorObject) {
    let start = out.len();
    out.extend_from_slice(br#"{"jsonrpc":"2.0","#);
    if let Some(id) = id {
        out.extend_from_slice(br#""id":"#);
        id.write(out);
        out.push(b',');
    }
    out.extend_from_slice(br#""error":"#);
    serde_json::to_writer(&mut *out, error).expect("an error object is always JSON");
    finish(out, start);
}

/// Appends a request.
///
/// # Errors
/// Where the params cannot be serialized; then nothing is appended.
pub(crate) fn write_request(
    out: &mut Vec<u8>,
    id: &RequestId,
    method: &str,
    params: &(impl Serialize + ?Sized),
) -> serde_json::Result<()> {
    let start = out.len();
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    id.write(out);
    out.push(b',');
    write_method_and_params(out, start, method, params)
}

/// Appends a notification.
///
/// # Errors
/// Where the params cannot be serialized; then nothing is appended.
pub(crate) fn write_notification(
    out: &mut Vec<u8>,
    method: &str,
    params: &(impl Serialize + ?Sized),
) -> serde_json::Result<()> {
    let start = out.len();
    out.extend_from_slice(br#"{"jsonrpc":"2.0","#);
    write_method_and_params(out, start, method, params)
}

fn write_method_and_params(
    out: &mut Vec<u8>,
    start: usize,
    method: &str,
    params: &(impl Serialize + ?Sized),
) -> serde_json::Result<()> {
    out.extend_from_slice(br#""method":"#);
    serde_json::to_writer(&mut *out, method).expect("a string is always JSON");
    out.extend_from_slice(br#","params":"#);
    if let Err(error) = serde_json::to_writer(&mut *out, params) {
        out.truncate(start);
        return Err(error);
    }
    finish(out, start);
    Ok(())
}

/// Closes the message that began at `start`. Raw JSON that came from elsewhere may hold line breaks between its
/// tokens (within strings they are always escaped), and a message must not.
fn finish(out: &mut Vec<u8>, start: usize) {
    let mut at = start;
    while let Some(offset) = out
        .get(at..)
        .and_then(|rest| memchr::memchr2(b'\n', b'\r', rest))
    {
        at += offset;
        if let Some(byte) = out.get_mut(at) {
            *byte = b' ';
        }
    }
    out.extend_from_slice(b"}\n");
}
