//! Framings and URIs, as pure functions of bytes: no I/O, no clock, no runtime.

pub(crate) mod lines;
pub(crate) mod uri;
pub(crate) mod uri_template;
