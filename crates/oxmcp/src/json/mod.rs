//! JSON as text: checked once, then walked over and handed on without building values.
//!
//! Every message is read and written on every call, so these few functions are where the time of a call goes. What they
//! promise is held against serde_json by property tests. [`Logged`] is beside them: how a peer's text goes into a log.

mod cursor;
mod logged;
mod pointer;
mod specials;
mod strings;
mod text;
mod walk;

pub(crate) use cursor::{Checked, Cursor, Syntax};
pub(crate) use logged::Logged;
pub(crate) use pointer::pointer_token;
pub(crate) use strings::write_string;
pub(crate) use text::{SPACE, Text};
pub(crate) use walk::Members;
