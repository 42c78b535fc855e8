//! Exchanges: one request over HTTP and its answer.

mod endless_answers;
mod errors;
mod legacy;
mod malformed_answers;
mod modern;
