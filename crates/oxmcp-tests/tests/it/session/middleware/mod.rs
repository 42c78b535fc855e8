//! Middleware: code around every request and notification.

mod chain;
mod metadata;
