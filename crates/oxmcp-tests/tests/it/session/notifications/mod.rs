//! Delivery of notifications to handlers, and progress in both directions.

mod before_answers;
mod ordering;
mod progress;
