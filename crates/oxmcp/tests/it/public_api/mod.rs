//! The public API as the compiler sees it.

mod send;
mod ui;
