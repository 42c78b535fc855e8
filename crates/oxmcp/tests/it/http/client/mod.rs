//! The client's side of HTTP.

mod endless;
mod eras;
mod errors;
mod legacy;
mod malformed;
mod mirror;
mod modern;
mod peer;
mod renewal;
mod restoring;
mod resumption;
mod retries;
mod safety;
mod sockets;
mod sse_2024;
mod storms;
