//! Guides, in the order in which to read them.
//!
//! | | |
//! |---|---|
//! | [`getting_started`] | a server, a client and a test in ten minutes |
//! | [`servers`] | tools, prompts, resources, state, progress |
//! | [`clients`] | connecting, calls, lists, answers to a server's questions, errors |
//! | [`asking`] | handlers that ask the user |
//! | [`testing`] | tests in process, virtual time, scripted peers |
//! | [`deployment`] | a server over HTTP: settings, proxies, health checks, restarts, what can be observed |
//! | [`production`] | limits, audits, metrics and alerts, and servers with many tools |
//! | [`authorization`] | protected servers, and clients that log in |
//! | [`tasks`] | calls that outlive their response |
//! | [`apps`] | user interfaces that servers offer and hosts show |
//! | [`skills`] | instructions for tasks that servers offer and hosts load |
//! | [`many_nodes`] | several processes that share sessions, streams and tasks |
//! | [`many_servers`] | a host with several servers: configuration files, merged lists, one set of handlers |
//! | [`errors`] | each error text, with its cause and what to do |
//! | [`tolerated`] | what oxmcp accepts from peers that do not follow the specification to the letter, and strict mode |
//! | [`migrating`] | from rmcp, and from the SDKs for Go, Python and TypeScript |
//! | [`comparison`] | oxmcp and other SDKs |
//! | [`for_coding_agents`] | one page of facts and patterns for coding agents |

#[doc = include_str!("apps.md")]
pub mod apps {}

#[doc = include_str!("asking.md")]
pub mod asking {}

#[doc = include_str!("authorization.md")]
pub mod authorization {}

#[doc = include_str!("clients.md")]
pub mod clients {}

#[doc = include_str!("comparison.md")]
pub mod comparison {}

#[doc = include_str!("deployment.md")]
pub mod deployment {}

#[doc = include_str!("errors.md")]
pub mod errors {}

#[doc = include_str!("for-coding-agents.md")]
pub mod for_coding_agents {}

#[doc = include_str!("gateways.md")]
pub mod gateways {}

#[doc = include_str!("getting-started.md")]
pub mod getting_started {}

#[doc = include_str!("many-nodes.md")]
pub mod many_nodes {}

#[doc = include_str!("many-servers.md")]
pub mod many_servers {}

#[doc = include_str!("migrating.md")]
pub mod migrating {}

#[doc = include_str!("production.md")]
pub mod production {}

#[doc = include_str!("servers.md")]
pub mod servers {}

#[doc = include_str!("skills.md")]
pub mod skills {}

#[doc = include_str!("tasks.md")]
pub mod tasks {}

#[doc = include_str!("testing.md")]
pub mod testing {}

#[doc = include_str!("tolerated.md")]
pub mod tolerated {}
