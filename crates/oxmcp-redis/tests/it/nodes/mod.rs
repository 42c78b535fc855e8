//! Several nodes of one server, behind a proxy that sends each request to the next one.

mod killing;
mod process;
mod proxy;
mod quota;
mod sharing;
mod shop;
