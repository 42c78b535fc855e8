//! The endpoint.

mod legacy;
mod modern;
mod peer;
