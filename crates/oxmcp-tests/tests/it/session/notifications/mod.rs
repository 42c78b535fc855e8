//! Delivery of notifications to handlers, and progress both ways.

mod before_answers;
mod ordering;
mod progress;
