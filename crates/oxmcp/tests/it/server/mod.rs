//! Servers: dispatch, features, logging, questions, subscriptions.

mod ask;
mod completion;
mod dispatch;
mod files;
mod logging;
mod prompt;
mod resource;
mod shared_state;
mod subscriptions;
mod tool;
