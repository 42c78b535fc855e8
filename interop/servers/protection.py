"""Protection of the Python servers with their SDKs: tokens come from an issuer."""

import asyncio
from typing import Any

import jwt
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings


class Verifier:
    """Verifies tokens of the issuer for the URL."""

    def __init__(self, url: str, issuer: str) -> None:
        self._expected = {"audience": url, "issuer": issuer}
        self._keys = jwt.PyJWKClient(f"{issuer}/jwks")

    async def verify_token(self, token: str) -> AccessToken | None:
        try:
            key = await asyncio.to_thread(self._keys.get_signing_key_from_jwt, token)
            claims: dict[str, Any] = jwt.decode(token, key.key, algorithms=["ES256"], **self._expected)
        except jwt.PyJWTError:
            return None
        return AccessToken(
            token=token,
            client_id=claims["client_id"],
            scopes=claims["scope"].split(),
            expires_at=claims["exp"],
            resource=claims["aud"],
            subject=claims["sub"],
            claims=claims,
        )


def protection(url: str, issuer: str) -> dict[str, Any]:
    """Return the arguments for creating a server."""
    settings = {
        "issuer_url": issuer,
        "resource_server_url": url,
        "required_scopes": ["mcp:basic"],
        "validate_token_resource": True,
    }
    return {"auth": AuthSettings.model_validate(settings), "token_verifier": Verifier(url, issuer)}
