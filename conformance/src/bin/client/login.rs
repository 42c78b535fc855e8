//! The logins of the authorization scenarios.

use std::{
    error::Error,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use http::{Request, header::LOCATION};
use oxmcp::{
    auth::{
        AuthorizationServerMetadata,
        client::{Client, SubjectToken},
        jose::SigningKey,
    },
    http::{DefaultClient, Endpoint, HttpClient, Login},
};
use serde_json::Value;

/// The redirect URI, which receives the responses to authorization requests. No server listens there.
const REDIRECT: &str = "http://127.0.0.1:4711/callback";
/// The URL by which the suite knows the client's metadata. No such document exists.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// The login of a scenario.
pub(crate) async fn of(
    scenario: &str,
    url: &str,
    context: &Value,
) -> Result<Login, Box<dyn Error>> {
    let text = |name: &str| {
        let value = context.get(name).and_then(Value::as_str);
        value.ok_or_else(|| format!("missing {name} in the context"))
    };
    let login = match scenario {
        "auth/client-credentials-jwt" => {
            let key = Arc::new(SigningKey::from_pem(text("private_key_pem")?)?);
            let client = Client::new(text("client_id")?)?.with_key(key);
            Login::client_credentials(client.issued_by(issuer_at(url).await?))
        }
        "auth/client-credentials-basic" => {
            let issuer = issuer_at(url).await?;
            Login::client_credentials(confidential(text)?.issued_by(issuer))
        }
        "auth/wif-jwt-bearer" => {
            let assertion = text("valid_jwt")?.to_owned();
            Login::assertion(move |_| {
                let assertion = assertion.clone();
                async { Ok(assertion) }
            })
        }
        "auth/enterprise-managed-authorization" => {
            let mut provider = AuthorizationServerMetadata::default();
            text("idp_issuer")?.clone_into(&mut provider.issuer);
            provider.token_endpoint = Some(text("idp_token_endpoint")?.to_owned());
            let there = Client::new(text("idp_client_id")?)?;
            let subject = SubjectToken::id_token(text("idp_id_token")?);
            let subject = move || {
                let subject = subject.clone();
                async { Ok(subject) }
            };
            let client = confidential(text)?.issued_by(issuer_at(url).await?);
            Login::enterprise(provider, there, subject).client(client)
        }
        "auth/pre-registration" => {
            agreeing().client(confidential(text)?.issued_by(text("issuer")?))
        }
        _ => agreeing(),
    };
    let document = Client::from_document_url(DOCUMENT)?;
    Ok(login
        .client_name("oxmcp-conformance")
        .client_document(document))
}

fn confidential<'a>(
    text: impl Fn(&str) -> Result<&'a str, String>,
) -> Result<Client, Box<dyn Error>> {
    Ok(Client::new(text("client_id")?)?.with_secret(text("client_secret")?))
}

/// The issuer of the authorization server at `url`. It is not in the context, so a login without a secret discovers it.
async fn issuer_at(url: &str) -> Result<String, Box<dyn Error>> {
    let issuer = Arc::new(OnceLock::new());
    let told = Arc::clone(&issuer);
    let login = Login::assertion(move |request| {
        let _ = told.set(request.issuer);
        async {
            Err(oxmcp::Error::internal(
                "login stopped: only the issuer is needed",
            ))
        }
    });
    let endpoint = Endpoint::new(url).login(login);
    let connected = oxmcp::Client::new("oxmcp-conformance", "1")
        .connect(endpoint)
        .await;
    drop(connected);
    Ok(issuer.get().cloned().ok_or("the server has no issuer")?)
}

/// The login of a user who agrees to everything.
fn agreeing() -> Login {
    Login::with_redirect(REDIRECT, |url| async move {
        let request = Request::get(url).body(Bytes::new());
        let request = request.map_err(|error| oxmcp::Error::internal(error.to_string()))?;
        let response = DefaultClient::new().send(request).await?;
        let location = response.headers().get(LOCATION);
        let location = location.and_then(|it| it.to_str().ok());
        location
            .map(str::to_owned)
            .ok_or_else(|| oxmcp::Error::internal("login failed: no redirect in the response"))
    })
}
