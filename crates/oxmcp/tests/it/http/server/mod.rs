//! The endpoint.

mod kept;
mod legacy;
mod modern;
mod nodes;
pub(super) mod peer;
mod standing;
mod records;
mod restored;
mod resumed;
mod stores;
