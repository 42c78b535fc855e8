"""The Python SDK 2.x. MODE is `legacy`, `auto` or a modern revision to insist on."""

import asyncio
import warnings
from typing import Any

from checks import Refused, arguments, check
from mcp import Client, MCPError, StdioServerParameters
from mcp.shared.exceptions import MCPDeprecationWarning

warnings.simplefilter("ignore", MCPDeprecationWarning)


class Python2:
    cancels = True

    def __init__(self, client: Client) -> None:
        self._client = client
        self.revision = client.protocol_version
        self.legacy = self.revision < "2026"

    async def list_tools(self) -> list[dict[str, Any]]:
        return [tool.model_dump(by_alias=True, mode="json") for tool in (await self._client.list_tools()).tools]

    async def call(self, name: str, arguments: dict[str, Any], on_progress: Any = None) -> dict[str, Any]:
        try:
            result = await self._client.call_tool(name, arguments, progress_callback=on_progress)
        except MCPError as error:
            raise Refused(error.code, error.message) from error
        return result.model_dump(by_alias=True, mode="json")

    async def ping(self) -> None:
        await self._client.send_ping()


async def main() -> None:
    mode, strict, command, args = arguments()
    async with Client(StdioServerParameters(command=command, args=args), mode=mode) as client:
        await check(Python2(client), strict)


asyncio.run(main())
