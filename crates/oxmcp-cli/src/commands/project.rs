//! Projects of servers: `oxmcp new` creates them, and `oxmcp package` describes and bundles them for others.

mod bundle;
mod manifest;
mod marker;
mod new;
mod package;
mod server_json;

pub(crate) use self::{new::run as new, package::run as package};
