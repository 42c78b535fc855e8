//! The client's cache of answers that servers declare fresh: `freshness` and `sharing`.

pub(crate) mod freshness;
mod sharing;
