//! Middleware: code around every request and notification.

mod chain;
mod ends;
mod metadata;
