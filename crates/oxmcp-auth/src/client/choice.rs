//! The choice of a client at an authorization server: one that is registered, one with a metadata document, or one to
//! register.

use super::{
    identity::Client,
    registration::{ClientMetadata, Registration},
};
use crate::{
    error::{AuthError, Result},
    metadata::authorization_server::AuthorizationServerMetadata,
    scope::ScopeSet,
    time::UnixTime,
};

/// The configured ways for a client to get a client ID.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ClientOptions {
    /// The clients that were registered manually, or earlier.
    pub registered: Vec<Client>,
    /// The client whose ID is the URL of its metadata document: [`Client::from_document_url`].
    pub document: Option<Client>,
    /// The metadata for dynamic registration.
    pub dynamic: Option<ClientMetadata>,
}

/// The result of [`choose_client`].
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientChoice {
    /// The client can be used.
    Ready(Client),
    /// The client must be registered first.
    Register(Box<Registration>),
}

/// Chooses the client at a server: one that is registered there, one whose ID is the URL of its metadata document, or one to
/// register.
///
/// # Errors
///
/// If there is none. If the only configured client belongs to another server, the error says so.
///
/// See [Client Registration](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization/client-registration).
pub fn choose_client(
    server: &AuthorizationServerMetadata,
    options: &ClientOptions,
    redirect_uri: Option<&str>,
    scopes: &ScopeSet,
    now: UnixTime,
) -> Result<ClientChoice> {
    let issuer = server.issuer.as_str();
    let usable = |it: &&Client| it.is_usable(issuer, redirect_uri, now);
    if let Some(client) = options.registered.iter().find(usable) {
        return Ok(ClientChoice::Ready(client.clone()));
    }
    if let Some(client) = &options.document
        && server.client_id_metadata_document_supported
    {
        return Ok(ClientChoice::Ready(client.clone()));
    }
    if let Some(metadata) = &options.dynamic
        && server.registration_endpoint.is_some()
    {
        let registration = Registration::new(server, metadata.clone(), scopes)?;
        return Ok(ClientChoice::Register(Box::new(registration)));
    }
    for client in &options.registered {
        client.check_issuer(issuer)?;
    }
    Err(server.located(AuthError::configuration(format!(
        "no client for the authorization server {issuer:?}: dynamic registration (`registration_endpoint`) and client ID \
         metadata documents (`client_id_metadata_document_supported`) are not offered or not configured; register a client there, \
         and configure it with `Login::client` or `ClientOptions::registered`"
    ))))
}
