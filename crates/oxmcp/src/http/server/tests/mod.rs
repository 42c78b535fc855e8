//! Tests of an endpoint: its settings, its budget, and the streams of its sessions.

mod budget;
mod settings;
mod streams;
