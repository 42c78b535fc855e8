//! Exchanges: one request over HTTP and its answer.

mod errors;
mod legacy;
mod malformed_answers;
mod modern;
mod odd_answers;
