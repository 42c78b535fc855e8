//! The endpoint.

mod legacy;
mod modern;
mod nodes;
pub(super) mod peer;
