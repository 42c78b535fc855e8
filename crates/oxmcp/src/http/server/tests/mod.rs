//! Tests of an endpoint: its settings, its budget, the streams of its sessions.

mod budget;
mod settings;
mod streams;
