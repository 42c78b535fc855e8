//! The client's side of HTTP.

mod errors;
mod legacy;
mod modern;
mod peer;
mod renewal;
mod resumption;
mod retries;
mod safety;
mod sockets;
mod sse_2024;
