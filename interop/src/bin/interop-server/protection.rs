//! Protection of the server by access tokens of an issuer: `jwt` tokens are verified by its keys, `opaque` tokens by introspection
//! at the issuer, and `bound` tokens are JWTs that are bound to a key of the client (DPoP with nonces).

use std::env;

use oxmcp::{
    Error, Principal, RequestContext, Tool,
    auth::{
        Secret,
        dpop::{NonceKeys, ProofVerifier},
        server::{Introspection, TrustedIssuer},
    },
    http::ProtectedResource,
};

/// The protected resource, which accepts tokens no longer than until their expiry.
pub(crate) fn resource(url: &str, issuer: &str, tokens: &str) -> oxmcp::Result<ProtectedResource> {
    let resource = ProtectedResource::new(url)
        .scopes("mcp:basic")
        .scopes_supported("mcp:basic mcp:write")
        .clock_skew(0);
    let trusted = TrustedIssuer::new(issuer).access_tokens_only();
    match tokens {
        "jwt" => Ok(resource.issuer(trusted)),
        "opaque" => {
            let secret = env::var("CLIENT_SECRET")
                .map_err(|_| Error::internal("the variable CLIENT_SECRET is not set"))?;
            let endpoint = format!("{issuer}/token/introspection");
            let introspection = Introspection::new(issuer, endpoint)
                .basic("mcp-server", &Secret::new(secret))
                .holds(1);
            Ok(resource.introspection(introspection))
        }
        "bound" => {
            // A fixed key suffices: the server ends before a nonce of another server could be used.
            let proofs = ProofVerifier::new().require_nonces(NonceKeys::new(&[7; 32]));
            Ok(resource.issuer(trusted).require_dpop(proofs))
        }
        _ => Err(Error::internal(format!(
            "unknown kind of tokens `{tokens}`"
        ))),
    }
}

/// A tool that requires another scope.
pub(crate) fn tool() -> Tool {
    Tool::new("write", "Say who writes", |cx: RequestContext| async move {
        let token = cx.principal().and_then(Principal::token);
        let whose = token.and_then(|it| it.subject.clone().or_else(|| it.client_id.clone()));
        format!("{} writes", whose.as_deref().unwrap_or("nobody"))
    })
    .scopes("mcp:write")
}
