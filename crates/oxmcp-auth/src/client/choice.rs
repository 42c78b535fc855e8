//! The choice of a client at an authorization server: registered, by a document of its own, or to be registered.

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

/// The ways in which a client can have an id, as a user has configured them.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ClientOptions {
    /// Clients that were registered by hand, or earlier.
    pub registered: Vec<Client>,
    /// A client whose id is the URL of its metadata: [`Client::from_document_url`].
    pub document: Option<Client>,
    /// What to register with.
    pub dynamic: Option<ClientMetadata>,
}

/// What is to be done to have a client's id.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientChoice {
    /// Nothing: this is the client.
    Ready(Client),
    /// The client is to be registered.
    Register(Box<Registration>),
}

/// Chooses how to have an id at a server: by a client that is registered there, by the URL of the client's metadata, or by
/// registration.
///
/// # Errors
///
/// If there is no way; if a client that was configured belongs to another server and no other way is left, the error says
/// that.
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
        "there is no client for the authorization server {issuer:?}: its metadata offers neither registrations \
         (`registration_endpoint`) nor ids that are URLs (`client_id_metadata_document_supported`), or none is configured. Have a \
         client registered there, and configure it (`Login::client`, or `ClientOptions::registered`)"
    ))))
}
