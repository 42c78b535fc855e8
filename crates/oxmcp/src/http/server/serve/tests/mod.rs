//! Tests of the accept loop and its connections, over pipes in memory.

mod closing;
mod connections;
mod refused_bodies;
mod script;
#[cfg(feature = "http-client")]
mod stalls;
