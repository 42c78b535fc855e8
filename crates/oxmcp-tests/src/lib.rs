//! The documents of the repository: their code is tested as documentation. The tests of the SDK are in `tests/`.

/// The code in README.md.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}

/// The code in the guide apps.
#[cfg(doctest)]
#[doc = include_str!("../../oxmcp/guide/apps.md")]
mod apps {}

/// The code in the guide asking.
#[cfg(doctest)]
#[doc = include_str!("../../oxmcp/guide/asking.md")]
mod asking {}

/// The code in the guide authorization.
#[cfg(doctest)]
#[doc = include_str!("../../oxmcp/guide/authorization.md")]
mod authorization {}

/// The code in the guide clients.
#[cfg(doctest)]
#[doc = include_str!("../../oxmcp/guide/clients.md")]
mod clients {}

/// The code in the guide comparison.
#[cfg(doctest)]
#[doc = include_str!("../../oxmcp/guide/comparison.md")]
mod comparison {}

/// The code in the guide deployment.
#[cfg(doctest)]
#[doc = include_str!("../../oxmcp/guide/deployment.md")]
mod deployment {}

/// The code in the guide errors.
#[cfg(doctest)]
#[doc = include_str!("../../oxmcp/guide/errors.md")]
mod errors {}

/// The code in the guide for-coding-agents.
#[cfg(doctest)]
#[doc = include_str!("../../oxmcp/guide/for-coding-agents.md")]
mod for_coding_agents {}

/// The code in the guide gateways.
#[cfg(doctest)]
#[doc = include_str!("../../oxmcp/guide/gateways.md")]
mod gateways {}

/// The code in the guide getting-started.
#[cfg(doctest)]
#[doc = include_str!("../../oxmcp/guide/getting-started.md")]
mod getting_started {}

/// The code in the guide many-nodes.
#[cfg(doctest)]
#[doc = include_str!("../../oxmcp/guide/many-nodes.md")]
mod many_nodes {}

/// The code in the guide many-servers.
#[cfg(doctest)]
#[doc = include_str!("../../oxmcp/guide/many-servers.md")]
mod many_servers {}

/// The code in the guide migrating.
#[cfg(doctest)]
#[doc = include_str!("../../oxmcp/guide/migrating.md")]
mod migrating {}

/// The code in the guide production.
#[cfg(doctest)]
#[doc = include_str!("../../oxmcp/guide/production.md")]
mod production {}

/// The code in the guide servers.
#[cfg(doctest)]
#[doc = include_str!("../../oxmcp/guide/servers.md")]
mod servers {}

/// The code in the guide skills.
#[cfg(doctest)]
#[doc = include_str!("../../oxmcp/guide/skills.md")]
mod skills {}

/// The code in the guide tasks.
#[cfg(doctest)]
#[doc = include_str!("../../oxmcp/guide/tasks.md")]
mod tasks {}

/// The code in the guide testing.
#[cfg(doctest)]
#[doc = include_str!("../../oxmcp/guide/testing.md")]
mod testing {}

/// The code in the guide tolerated.
#[cfg(doctest)]
#[doc = include_str!("../../oxmcp/guide/tolerated.md")]
mod tolerated {}
