"""The Python SDK 2.x. MODE is `legacy`, `auto` or a modern revision to insist on."""

import asyncio
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

from checks import arguments, check
from features import ROOTS, Person, Refused, sample
from login import Login
from mcp import Client, MCPError, StdioServerParameters, types
from mcp.client.auth import AuthorizationCodeResult
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPDeprecationWarning
from opentelemetry import trace

warnings.simplefilter("ignore", MCPDeprecationWarning)

LOG_LEVEL = "io.modelcontextprotocol/logLevel"


def plain(result: Any) -> dict[str, Any]:
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)


async def wire(answer: Awaitable[Any]) -> dict[str, Any]:
    try:
        return plain(await answer)
    except MCPError as error:
        raise Refused(error.code, error.message) from error


class Python2:
    cancels = True

    def __init__(self, client: Client, heard: list[Any], updates: "asyncio.Queue[str]") -> None:
        self._client = client
        self.login: Login | None = None
        self._heard = heard
        self._updates = updates
        self.revision = client.protocol_version
        self.legacy = self.revision < "2026"

    async def list_tools(self) -> list[dict[str, Any]]:
        return (await wire(self._client.list_tools()))["tools"]

    async def call(self, name: str, arguments: dict[str, Any], on_progress: Any = None) -> dict[str, Any]:
        return await wire(self._client.call_tool(name, arguments, progress_callback=on_progress))

    async def ping(self) -> None:
        await self._client.send_ping()

    async def prompts(self) -> list[dict[str, Any]]:
        return (await wire(self._client.list_prompts()))["prompts"]

    async def prompt(self, name: str, arguments: dict[str, str]) -> dict[str, Any]:
        return await wire(self._client.get_prompt(name, arguments))

    async def resources(self) -> list[dict[str, Any]]:
        return (await wire(self._client.list_resources()))["resources"]

    async def templates(self) -> list[dict[str, Any]]:
        return (await wire(self._client.list_resource_templates()))["resourceTemplates"]

    async def read(self, uri: str) -> list[dict[str, Any]]:
        return (await wire(self._client.read_resource(uri)))["contents"]

    async def complete(self, ref: dict[str, str], argument: dict[str, str]) -> dict[str, Any]:
        kind = types.PromptReference if ref["type"] == "ref/prompt" else types.ResourceTemplateReference
        return (await wire(self._client.complete(kind.model_validate(ref), argument)))["completion"]

    async def updated(self, uri: str, run: Callable[[], Awaitable[Any]]) -> None:
        if self.legacy:
            await self._client.subscribe_resource(uri)
            await run()
            assert await self._updates.get() == uri
            await self._client.unsubscribe_resource(uri)
            return
        async with self._client.listen(resource_subscriptions=[uri]) as subscription:
            await run()
            assert (await anext(aiter(subscription))).uri == uri

    async def logs(self, level: str, name: str) -> list[dict[str, Any]]:
        if self.legacy:
            await self._client.set_logging_level(level)
        meta = None if self.legacy else {LOG_LEVEL: level}
        await self._client.call_tool(name, {}, meta=meta)
        return [plain(params) for params in self._heard]


async def check_trace(client: Client) -> None:
    """The server sees the trace of the call."""
    trace_id, sampled = 0x0AF7651916CD43DD8448EB211C80319C, trace.TraceFlags(trace.TraceFlags.SAMPLED)
    caller = trace.SpanContext(trace_id, 0xB7AD6B7169203331, is_remote=False, trace_flags=sampled)
    with trace.use_span(trace.NonRecordingSpan(caller)):
        said = plain(await client.call_tool("trace", {}))
    assert said["content"][0]["text"] == format(trace_id, "032x"), said


def transport(command: str, args: list[str], login: Login | None) -> Any:
    match command:
        case "login":
            return streamable_http_client(args[0], http_client=create_mcp_http_client(auth=login.provider))
        case "http" | "nodes" | "rolling":
            return args[0]
        case "sse":
            return sse_client(args[0])
        case _:
            return StdioServerParameters(command=command, args=args)


async def main() -> None:
    mode, strict, command, args = arguments()
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
        if isinstance(message, types.ResourceUpdatedNotification):
            updates.put_nowait(str(message.params.uri))

    login = None
    if command == "login":
        login = Login(args[0], mode != "legacy", lambda code, state, iss: AuthorizationCodeResult(code=code, state=state, iss=iss))
    async with Client(
        transport(command, args, login),
        mode=mode,
        elicitation_callback=elicit,
        sampling_callback=create_message,
        list_roots_callback=list_roots,
        logging_callback=log,
        message_handler=message,
    ) as client:
        if strict and command not in ("nodes", "rolling"):
            tools = (await client.list_tools()).tools
            if any(tool.name == "trace" for tool in tools):
                await check_trace(client)
        peer = Python2(client, heard, updates)
        peer.login = login
        await check(peer, strict, person)


asyncio.run(main())
