//! What has been done to other implementations of the protocol over HTTP, done to this one. Where an attack is on one part
//! alone, its test is beside that part: `grep attack_`.

mod ambiguity;
mod bounds;
mod bytes;
mod hidden;
mod leaks;
mod net;
mod origins;
mod owners;
mod replies;
mod secrets;
