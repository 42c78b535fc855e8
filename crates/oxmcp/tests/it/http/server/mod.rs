//! The endpoint.

mod legacy;
mod modern;
mod nodes;
mod peer;
