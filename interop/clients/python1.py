"""The Python SDK 1.x. MODE is ignored: there is only one."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from checks import arguments, check
from features import ROOTS, Person, Refused, sample
from login import Login
from mcp import ClientSession, McpError, StdioServerParameters, types
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client


def plain(result: Any) -> dict[str, Any]:
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)


async def wire(answer: Awaitable[Any]) -> dict[str, Any]:
    try:
        return plain(await answer)
    except McpError as error:
        raise Refused(error.error.code, error.error.message) from error


class Python1:
    legacy = True
    cancels = False

    def __init__(self, session: ClientSession, revision: str, heard: list[Any], updates: "asyncio.Queue[str]") -> None:
        self._session = session
        self.login: Login | None = None
        self._heard = heard
        self._updates = updates
        self.revision = revision

    async def list_tools(self) -> list[dict[str, Any]]:
        return (await wire(self._session.list_tools()))["tools"]

    async def call(self, name: str, arguments: dict[str, Any], on_progress: Any = None) -> dict[str, Any]:
        return await wire(self._session.call_tool(name, arguments, progress_callback=on_progress))

    async def ping(self) -> None:
        await self._session.send_ping()

    async def prompts(self) -> list[dict[str, Any]]:
        return (await wire(self._session.list_prompts()))["prompts"]

    async def prompt(self, name: str, arguments: dict[str, str]) -> dict[str, Any]:
        return await wire(self._session.get_prompt(name, arguments))

    async def resources(self) -> list[dict[str, Any]]:
        return (await wire(self._session.list_resources()))["resources"]

    async def templates(self) -> list[dict[str, Any]]:
        return (await wire(self._session.list_resource_templates()))["resourceTemplates"]

    async def read(self, uri: str) -> list[dict[str, Any]]:
        return (await wire(self._session.read_resource(types.AnyUrl(uri))))["contents"]

    async def complete(self, ref: dict[str, str], argument: dict[str, str]) -> dict[str, Any]:
        kind = types.PromptReference if ref["type"] == "ref/prompt" else types.ResourceTemplateReference
        return (await wire(self._session.complete(kind.model_validate(ref), argument)))["completion"]

    async def updated(self, uri: str, run: Callable[[], Awaitable[Any]]) -> None:
        await self._session.subscribe_resource(types.AnyUrl(uri))
        await run()
        assert await self._updates.get() == uri
        await self._session.unsubscribe_resource(types.AnyUrl(uri))

    async def logs(self, level: str, name: str) -> list[dict[str, Any]]:
        await self._session.set_logging_level(level)
        await self._session.call_tool(name, {})
        return [plain(params) for params in self._heard]


def transport(command: str, args: list[str], login: Login | None) -> Any:
    match command:
        case "login":
            return streamable_http_client(args[0], http_client=create_mcp_http_client(auth=login.provider))
        case "http" | "nodes" | "rolling":
            return streamable_http_client(args[0])
        case "sse":
            return sse_client(args[0])
        case _:
            return stdio_client(StdioServerParameters(command=command, args=args))


async def main() -> None:
    _mode, strict, command, args = arguments()
    person = Person()
    heard: list[Any] = []
    updates: asyncio.Queue[str] = asyncio.Queue()

    async def elicit(_context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult.model_validate(person.elicit(plain(params)))

    async def create_message(_context: Any, params: Any) -> types.CreateMessageResult:
        return types.CreateMessageResult.model_validate(sample(plain(params)))

    async def list_roots(_context: Any) -> types.ListRootsResult:
        return types.ListRootsResult.model_validate(ROOTS)

    async def log(params: Any) -> None:
        heard.append(params)

    async def message(message: Any) -> None:
        if isinstance(message, types.ServerNotification) and isinstance(message.root, types.ResourceUpdatedNotification):
            updates.put_nowait(str(message.root.params.uri))

    login = None
    if command == "login":
        login = Login(args[0], True, lambda code, state, issuer: (code, state))
    async with transport(command, args, login) as (read, write, *_):
        async with ClientSession(
            read,
            write,
            elicitation_callback=elicit,
            sampling_callback=create_message,
            list_roots_callback=list_roots,
            logging_callback=log,
            message_handler=message,
        ) as session:
            answer = await session.initialize()
            peer = Python1(session, str(answer.protocolVersion), heard, updates)
            peer.login = login
            await check(peer, strict, person)


asyncio.run(main())
