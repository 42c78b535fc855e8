//! An authorization server for development: every user may log in, and gets every scope. It checks almost nothing.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use axum::{
    Form, Json, Router,
    extract::{Query, State},
    http::{HeaderMap, StatusCode, header},
    response::Redirect,
    routing::{get, post},
};
use oxmcp::auth::{
    AuthError, UnixTime,
    jose::{Algorithm, SigningKey},
};
use serde_json::{Value, json};

type Parameters = HashMap<String, String>;

/// An authorization server under `{origin}/issuer`, for use on loopback.
///
/// The cookie `user` names the user at the browser; without it the user is ann.
#[derive(Clone)]
pub struct DevelopmentIssuer(Arc<Inner>);

impl std::fmt::Debug for DevelopmentIssuer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("DevelopmentIssuer")
            .field(&self.0.url)
            .finish()
    }
}

struct Inner {
    url: String,
    key: SigningKey,
    /// The parameters of authorization requests, by their codes.
    codes: Mutex<HashMap<String, Parameters>>,
}

impl DevelopmentIssuer {
    /// Creates an issuer with a new key.
    ///
    /// # Errors
    /// If the system provides no randomness.
    pub fn new(origin: &str) -> Result<Self, AuthError> {
        Ok(Self(Arc::new(Inner {
            url: format!("{origin}/issuer"),
            key: SigningKey::generate(Algorithm::Es256)?.with_key_id("development"),
            codes: Mutex::default(),
        })))
    }

    /// Returns the issuer identifier.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.0.url
    }

    /// Returns the routes of the issuer.
    pub fn routes(&self) -> Router {
        let (url, keys) = (&self.0.url, json!({"keys": [self.0.key.public_jwk()]}));
        let metadata = json!({
            "issuer": url, "jwks_uri": format!("{url}/keys"), "registration_endpoint": format!("{url}/register"),
            "authorization_endpoint": format!("{url}/authorize"), "token_endpoint": format!("{url}/token"),
            "revocation_endpoint": format!("{url}/revoke"), "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
            "authorization_response_iss_parameter_supported": true,
        });
        let place = "/.well-known/oauth-authorization-server/issuer";
        Router::new()
            .route(place, get(async || Json(metadata)))
            .route("/issuer/keys", get(async || Json(keys)))
            .route("/issuer/register", post(register))
            .route("/issuer/authorize", get(authorize))
            .route("/issuer/token", post(token))
            .route("/issuer/revoke", post(async || StatusCode::OK))
            .with_state(self.clone())
    }

    /// Returns a token for the MCP server at a URL.
    ///
    /// # Errors
    /// If the token cannot be signed.
    pub fn token(&self, server: &str, subject: &str, scope: &str) -> Result<String, AuthError> {
        let now = UnixTime::from(SystemTime::now()).seconds();
        let claims = json!({
            "iss": self.0.url, "aud": server, "sub": subject, "client_id": "example", "scope": scope, "iat": now, "exp": now + 60,
        });
        self.0.key.sign("at+jwt", &claims)
    }
}

async fn register(Json(metadata): Json<Value>) -> (StatusCode, Json<Value>) {
    let client = json!({"client_id": "registered", "redirect_uris": metadata.get("redirect_uris")});
    (StatusCode::CREATED, Json(client))
}

/// The authorization endpoint. A real one would ask the user; this one always agrees.
async fn authorize(
    State(issuer): State<DevelopmentIssuer>,
    headers: HeaderMap,
    Query(mut request): Query<Parameters>,
) -> Redirect {
    let cookie = headers.get(header::COOKIE).and_then(|it| it.to_str().ok());
    let user = cookie.and_then(|it| it.strip_prefix("user="));
    request.insert("subject".to_owned(), user.unwrap_or("ann").to_owned());
    let get = |name| request.get(name).map_or("", String::as_str);
    let (redirect_uri, state) = (get("redirect_uri"), get("state"));
    let mut codes = issuer
        .0
        .codes
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let code = format!("code-{}", codes.len());
    let to = format!(
        "{redirect_uri}?code={code}&state={state}&iss={}",
        issuer.0.url
    );
    codes.insert(code, request);
    Redirect::to(&to)
}

async fn token(
    State(issuer): State<DevelopmentIssuer>,
    Form(request): Form<Parameters>,
) -> Result<Json<Value>, (StatusCode, Json<Value>)> {
    let refused = |error: &str| (StatusCode::BAD_REQUEST, Json(json!({"error": error})));
    let granted = match request.get("code") {
        // The code is removed, because it is valid for only one token.
        Some(code) => {
            let mut codes = issuer
                .0
                .codes
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let granted = codes.get_mut(code).map(std::mem::take);
            granted
                .filter(|it| !it.is_empty())
                .ok_or_else(|| refused("invalid_grant"))?
        }
        None => request,
    };
    let get = |name| granted.get(name).map(String::as_str);
    let subject = get("subject").unwrap_or("a machine");
    let (server, scope) = (
        get("resource").unwrap_or_default(),
        get("scope").unwrap_or_default(),
    );
    let token = issuer.token(server, subject, scope);
    let token = token.map_err(|_| refused("server_error"))?;
    Ok(Json(
        json!({"access_token": token, "token_type": "Bearer", "expires_in": 60, "scope": scope}),
    ))
}
