//! Validation of requests that have faults: one, several, and those that clients make.

mod eras;
mod faults;
mod origins;
mod request;
