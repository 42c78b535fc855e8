"""The login of the Python clients with their SDKs: an in-memory store, and a user who agrees at once.

The twin of `login.mjs`.
"""

import asyncio
import os
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlparse

from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

REDIRECT = "http://127.0.0.1:4711/callback"
DOCUMENT = "https://client.example/public.json"
# How long our server caches the introspection of a token.
CACHE_LIFETIME = 1.2


async def browse(url: str, *rest: str) -> str:
    """Return the URL of the last page."""
    browser = await asyncio.create_subprocess_exec(os.environ["BROWSER"], url, *rest, stdout=asyncio.subprocess.PIPE)
    output, _ = await browser.communicate()
    assert browser.returncode == 0, f"the browser ended with {browser.returncode}"
    return output.decode().strip()


class Storage:
    """The storage of the SDK."""

    def __init__(self) -> None:
        self._tokens: OAuthToken | None = None
        self._client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


class Login:
    """`answer` makes the argument for the SDK from the code, the state and the issuer. With a document, the client's ID is a URL;
    otherwise the SDK registers the client, only for the scopes of the first login."""

    def __init__(self, url: str, has_document: bool, answer: Callable[[str, str, str], Any]) -> None:
        self.logins = 0
        self.has_document = has_document
        self._last = ""
        self._answer = answer
        self.provider = OAuthClientProvider(
            server_url=url,
            client_metadata=OAuthClientMetadata.model_validate(
                {
                    "client_name": "interop client",
                    "redirect_uris": [REDIRECT],
                    "grant_types": ["authorization_code", "refresh_token"],
                    "response_types": ["code"],
                    "token_endpoint_auth_method": "none",
                }
            ),
            storage=Storage(),
            redirect_handler=self._redirect,
            callback_handler=self._callback,
            client_metadata_url=DOCUMENT if has_document else None,
        )

    async def _redirect(self, url: str) -> None:
        self.logins += 1
        self._last = await browse(url, REDIRECT)

    async def _callback(self) -> Any:
        query = parse_qs(urlparse(self._last).query)
        return self._answer(query["code"][0], query["state"][0], query["iss"][0])

    async def revoke(self) -> None:
        """Revoke the tokens at the issuer, and wait until our server no longer caches them."""
        await browse(f"{os.environ['ISSUER']}/administrator/revoke")
        await asyncio.sleep(CACHE_LIFETIME)
