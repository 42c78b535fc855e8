"""The Python SDK 1.x. MODE is ignored: there is one."""

import asyncio
from typing import Any

from checks import Refused, arguments, check
from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client


class Python1:
    legacy = True
    cancels = False

    def __init__(self, session: ClientSession, revision: str) -> None:
        self._session = session
        self.revision = revision

    async def list_tools(self) -> list[dict[str, Any]]:
        return [tool.model_dump(by_alias=True, mode="json") for tool in (await self._session.list_tools()).tools]

    async def call(self, name: str, arguments: dict[str, Any], on_progress: Any = None) -> dict[str, Any]:
        try:
            result = await self._session.call_tool(name, arguments, progress_callback=on_progress)
        except McpError as error:
            raise Refused(error.error.code, error.error.message) from error
        return result.model_dump(by_alias=True, mode="json")

    async def ping(self) -> None:
        await self._session.send_ping()


async def main() -> None:
    _mode, strict, command, args = arguments()
    async with stdio_client(StdioServerParameters(command=command, args=args)) as (read, write):
        async with ClientSession(read, write) as session:
            answer = await session.initialize()
            await check(Python1(session, str(answer.protocolVersion)), strict)


asyncio.run(main())
