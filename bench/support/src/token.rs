//! The access token of the protected cell, and the data that its server needs to verify it. It is valid until the year 2100.

/// The `Authorization` header of the driver: a JSON Web Token, signed by one of [`KEYS`], for [`RESOURCE`].
pub(crate) const BEARER: &str = concat!(
    "Bearer ",
    "eyJhbGciOiJFUzI1NiIsInR5cCI6ImF0K2p3dCIsImtpZCI6ImJlbmNoIn0",
    ".eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlIiwiYXVkIjoiaHR0cHM6Ly9iZW5jaC5leGFtcGxlL21jcCIsInN1YiI6ImFubiIsImNsaWVudF9pZCI6ImJlbmNoIiwic2NvcGUiOiJtY3AiLCJpYXQiOjE3NjcyMjU2MDAsImV4cCI6NDEwMjQ0NDgwMH0",
    ".l7UsRySrhV6SHHz6uh9OYTVVGLFOsDc_VysP17E7WmwEW7jpICCPY4Js8MPe4SLcf2UdQawRWP2okHt4Ril0Uw"
);

/// The URL that the token is for.
pub const RESOURCE: &str = "https://bench.example/mcp";

/// The issuer of the token.
pub const ISSUER: &str = "https://issuer.example";

/// The issuer's keys.
pub const KEYS: &str = r#"{"keys":[{"kty":"EC","crv":"P-256","alg":"ES256","kid":"bench","x":"9UM_sp0UCvYwlquwnayqmlHIodgwPDjOvhTDdrB1XF0","y":"DlCCtq3HzoFfDq0XDAg69G7llkhB5g8-Nn5oAj01Xic"}]}"#;
