//! Attacks on other implementations of the protocol over HTTP, repeated against this one. The test of an attack on a single
//! part is next to that part: `grep "// Attack: "`.

mod ambiguity;
mod bounds;
mod hidden_features;
mod hostile_servers;
mod malformed_bytes;
mod mixed_up_answers;
mod origins;
mod owners;
mod raw_http2;
mod raw_sockets;
mod secrets;
