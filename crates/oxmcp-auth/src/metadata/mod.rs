//! Metadata documents of protected resources and authorization servers, and their URLs.

pub(crate) mod authorization_server;
pub(crate) mod document;
pub(crate) mod protected_resource;
pub(crate) mod well_known;
