//! Delivery of notifications to handlers, and progress both ways.

mod ordering;
mod progress;
