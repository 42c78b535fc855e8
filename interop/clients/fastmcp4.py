"""The client of FastMCP 4.x, for `rolling.py`. MODE is `legacy` or `auto`."""

import asyncio
import json
from typing import Any

from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult

from rolling import check_rolling


class FastMcp:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def call(self, name: str, arguments: dict[str, Any], on_progress: Any = None) -> dict[str, Any]:
        done = await self._client.call_tool_mcp(name, arguments)
        return done.model_dump(by_alias=True, mode="json", exclude_none=True)


class Person:
    def elicit(self, params: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError


async def main() -> None:
    import sys

    mode, _strict, _command, url = sys.argv[1:]
    person = Person()

    async def elicit(message: str, _type: Any, params: Any, _context: Any) -> Any:
        answer = person.elicit({})
        return ElicitResult(action=answer["action"], content=answer["content"])

    async with Client(url, elicitation_handler=elicit, mode=mode) as client:
        held = await check_rolling(FastMcp(client), person, url)
    print(json.dumps({"checks": held}, separators=(",", ":")))


asyncio.run(main())
