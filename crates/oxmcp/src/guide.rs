//! Guides, in the order in which to read them.
//!
//! | | |
//! |---|---|
//! | [`getting_started`] | a server, a client and a test in ten minutes |
//! | [`servers`] | tools, prompts, resources, state, progress |
//! | [`clients`] | connecting, calls, lists, answers to a server's questions, errors |
//! | [`asking`] | handlers that ask the user |
//! | [`testing`] | tests in process, virtual time, scripted peers |
//! | [`comparison`] | oxmcp and other SDKs |
//! | [`for_coding_agents`] | one page of facts and patterns for coding agents |

#[doc = include_str!("../guide/asking.md")]
pub mod asking {}

#[doc = include_str!("../guide/clients.md")]
pub mod clients {}

#[doc = include_str!("../guide/comparison.md")]
pub mod comparison {}

#[doc = include_str!("../guide/for-coding-agents.md")]
pub mod for_coding_agents {}

#[doc = include_str!("../guide/getting-started.md")]
pub mod getting_started {}

#[doc = include_str!("../guide/servers.md")]
pub mod servers {}

#[doc = include_str!("../guide/testing.md")]
pub mod testing {}
