//! The endpoint.

mod ends;
mod kept;
mod legacy;
mod modern;
mod nodes;
pub(super) mod peer;
mod records;
mod restored;
mod resumed;
mod standing;
mod stores;
