//! Authentication of a client at a token endpoint.

use http::{HeaderMap, header::AUTHORIZATION};
use serde::Serialize;

use super::identity::{Client, ClientAuthentication};
use crate::{
    error::{AuthError, Result},
    exchange::basic_credentials,
    jose::SigningKey,
    metadata::authorization_server::AuthorizationServerMetadata,
    secret::{Secret, unguessable},
    time::UnixTime,
};

/// Seconds for which an assertion is valid.
const ASSERTION_LIFETIME: u64 = 120;

/// The claims of an assertion.
#[derive(Serialize)]
struct Assertion<'a> {
    iss: &'a str,
    sub: &'a str,
    aud: &'a str,
    jti: &'a str,
    iat: u64,
    exp: u64,
}

/// The parameters of a form to send, in their order.
pub(crate) type Form = Vec<(&'static str, Secret)>;

/// Adds the client's id and its authentication to a request.
pub(crate) fn authenticate(
    client: &Client,
    server: &AuthorizationServerMetadata,
    now: UnixTime,
    headers: &mut HeaderMap,
    form: &mut Form,
) -> Result<()> {
    client.check_issuer(&server.issuer)?;
    let id = client.id();
    match client.authentication() {
        ClientAuthentication::None => form.push(("client_id", id.into())),
        ClientAuthentication::Secret(secret) => match method_of_secret(server) {
            "client_secret_post" => post(id, secret, form),
            "none" => form.push(("client_id", id.into())),
            _ => basic(id, secret, headers)?,
        },
        ClientAuthentication::SecretBasic(secret) => basic(id, secret, headers)?,
        ClientAuthentication::SecretPost(secret) => post(id, secret, form),
        ClientAuthentication::PrivateKeyJwt(key) => {
            check_algorithm(key, server)?;
            let token_id = unguessable()?;
            let assertion = Assertion {
                iss: id,
                sub: id,
                aud: &server.issuer,
                jti: token_id.expose(),
                iat: now.seconds(),
                exp: now.plus(ASSERTION_LIFETIME).seconds(),
            };
            let assertion = key.sign("JWT", &assertion)?;
            let kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
            form.push(("client_assertion_type", kind.into()));
            form.push(("client_assertion", assertion.into()));
        }
    }
    Ok(())
}

/// The method by which a secret is sent: in the header, unless the server accepts it only in the body, or not at all.
fn method_of_secret(server: &AuthorizationServerMetadata) -> &'static str {
    let Some(offered) = &server.token_endpoint_auth_methods_supported else {
        return "client_secret_basic";
    };
    let known = ["client_secret_basic", "client_secret_post", "none"];
    let found = known
        .into_iter()
        .find(|it| offered.iter().any(|of| of == it));
    found.unwrap_or("client_secret_basic")
}

fn basic(id: &str, secret: &Secret, headers: &mut HeaderMap) -> Result<()> {
    headers.insert(AUTHORIZATION, basic_credentials(id, secret)?);
    Ok(())
}

fn post(id: &str, secret: &Secret, form: &mut Form) {
    form.push(("client_id", id.into()));
    form.push(("client_secret", secret.clone()));
}

fn check_algorithm(key: &SigningKey, server: &AuthorizationServerMetadata) -> Result<()> {
    let own = key.algorithm().as_str();
    let Some(offered) = &server.token_endpoint_auth_signing_alg_values_supported else {
        return Ok(());
    };
    if offered.iter().any(|it| it == own) {
        return Ok(());
    }
    Err(AuthError::unsupported(format!(
        "authorization server {:?} accepts assertions signed with {}, but the key signs with {own}",
        server.issuer,
        offered.join(", ")
    )))
}
