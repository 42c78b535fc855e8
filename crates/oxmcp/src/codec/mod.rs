//! Framings, as pure functions of bytes: no I/O, no clock, no runtime.

pub(crate) mod lines;
