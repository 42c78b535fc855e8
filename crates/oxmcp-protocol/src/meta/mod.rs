//! `_meta`: the metadata of messages.

pub(crate) mod has_meta;
pub(crate) mod object;
pub(crate) mod progress_token;
pub(crate) mod request;
pub(crate) mod trace_context;
