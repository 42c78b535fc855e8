//! Several nodes of one server, behind a proxy that sends each request to the next one.
//!
//! | | |
//! |---|---|
//! | `proxy` | the proxy |
//! | `shop` | the server, its ledger, and clients that know the right answers |
//! | `sharing` | nodes in this process: what they share |
//! | `process` | nodes that are processes, and can be killed |
//! | `killing` | calls that are made while nodes are killed |

mod killing;
mod process;
mod proxy;
mod sharing;
mod shop;
