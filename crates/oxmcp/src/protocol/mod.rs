//! The types of the protocol, one file per page of the specification, each holding every revision's members.

pub mod revision;

pub use revision::Revision;
