//! Parts that the programs of the interop tests share.

mod servers;
mod trace;

pub use servers::read_servers;
pub use trace::{current_id, install};
