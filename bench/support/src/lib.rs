//! The shared part of the benchmark's drivers and clients: messages, their checks, the clock and the report.
//!
//! This crate does no I/O with a server: [`Load`] decides what to send next and judges the answers, and the caller moves the bytes,
//! blocking or not. All drivers thus put the same load on a server.

mod adder;
mod call;
mod clock;
mod era;
mod http;
mod lines;
mod load;
mod options;
mod order;
mod report;
mod token;
mod workers;

pub use adder::Adder;
pub use call::{Call, TOOLS};
pub use clock::{TIME_LIMIT, children_cpu, give_up_after, own_cpu, process_cpu};
pub use era::Era;
pub use http::{Requests, Response, Responses};
pub use lines::Lines;
pub use load::{Load, Phase};
pub use options::{Held, Options, Runtime, Transport, Work};
pub use report::{Latencies, Report};
pub use token::{ISSUER, KEYS, RESOURCE};
pub use workers::{Worker, client, keep_in_flight};
