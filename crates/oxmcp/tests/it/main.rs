//! The tests of the crate as its users see it, in one binary.

mod transport;
