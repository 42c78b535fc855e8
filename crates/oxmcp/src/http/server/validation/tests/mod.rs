//! Tests of validation: requests with one fault, with several, and as clients send them.

mod eras;
mod faults;
mod origins;
mod request;
