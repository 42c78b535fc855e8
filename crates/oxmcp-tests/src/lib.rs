//! The documents of the repository: their code is tested as documentation. The tests of the SDK are in `tests/`.

/// The code in README.md.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}

/// The code in MIGRATING.md.
#[cfg(doctest)]
#[doc = include_str!("../../../MIGRATING.md")]
mod migrating {}

/// The code in docs/authorization.md.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/authorization.md")]
mod authorization {}

/// The code in docs/many-nodes.md.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/many-nodes.md")]
mod many_nodes {}

/// The code in docs/tasks.md.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tasks.md")]
mod tasks {}
