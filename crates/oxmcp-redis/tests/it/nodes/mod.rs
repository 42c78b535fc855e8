//! Several nodes of one server, behind a proxy that sends each request to the next one.
//!
//! | | |
//! |---|---|
//! | `proxy` | the proxy |
//! | `shop` | the server, its ledger, and clients that know the right answers |
//! | `sharing` | nodes in this process: what they share |
//! | `quota` | the sessions that one principal, and all, may have at all of them; their health |
//! | `process` | nodes that are processes, and can be killed |
//! | `killing` | calls that are made while nodes are killed |

mod killing;
mod process;
mod proxy;
mod quota;
mod sharing;
mod shop;
