//! Tests of the accept loop and its connections, over pipes in memory.

mod closing;
mod connections;
mod script;
