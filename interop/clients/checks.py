"""The checks of every Python client against a server with the tools of `interop-server`.

The twin of `checks.mjs`. A client script adapts its SDK to `Peer` and passes it to `main`.
Usage of each script: `python SCRIPT MODE strict|lenient COMMAND ARGS...`, where `http URL`, `login URL` and `sse URL` are
commands for a running server; `nodes URL` and `rolling URL` are for several servers, which fail during the checks; see `nodes.py`
and `rolling.py`. `strict` is for our server; `lenient` is for the foreign twins in
`../servers`, which differ where the specification leaves a choice.
"""

import asyncio
import json
import sys
from collections.abc import Iterable
from itertools import chain
from typing import Any, Protocol

from features import Features, Person, Refused, text
from gateway import GatewayChecks
from login import Login
from nodes import check_nodes
from rolling import check_rolling

FORGOTTEN = 1_000_000


class Peer(Protocol):
    """A connected client. Results are dictionaries, as on the wire; a protocol error raises `Refused`."""

    revision: str
    legacy: bool
    cancels: bool  # whether it tells the server when a call is cancelled
    login: Login | None

    async def list_tools(self) -> list[dict[str, Any]]: ...
    async def call(self, name: str, arguments: dict[str, Any], on_progress: Any = None) -> dict[str, Any]: ...
    async def ping(self) -> None: ...


class Checks(Features):
    """Each public method is one check, run in the order of definition. `False` means that it does not apply."""

    def __init__(self, peer: Peer, strict: bool, person: Person) -> None:
        self._peer = peer
        self._person = person
        self._strict = strict
        self._tools: dict[str, dict[str, Any]] = {}

    def _has(self, name: str) -> bool:
        return self._strict or name in self._tools

    async def lists_the_tools_with_object_schemas(self) -> None:
        self._tools = {tool["name"]: tool for tool in await self._peer.list_tools()}
        for name in ["add", "divide", "slow", "echo"]:
            assert name in self._tools, f"tools/list must offer {name}"
            assert self._tools[name]["inputSchema"]["type"] == "object", self._tools[name]

    async def calls_a_tool(self) -> None:
        total = await self._peer.call("add", {"a": 1, "b": 2})
        assert not total.get("isError"), total
        assert float(text(total)) == 3, total
        if self._peer.revision >= "2025-06-18" and self._strict:
            expected = {"result": 3} if self._peer.legacy else 3
            assert total["structuredContent"] == expected, total

    async def echoes_text_that_json_must_escape(self) -> None:
        said = 'line\nbreak, "quotes", \u0000, é and 🦀'
        assert text(await self._peer.call("echo", {"text": said})) == said

    async def reads_a_tool_error(self) -> None:
        assert text(await self._peer.call("divide", {"a": 1, "b": 4})) == "0.25"
        failed = await self._peer.call("divide", {"a": 1, "b": 0})
        assert failed["isError"] is True, failed
        assert "b must not be 0" in text(failed), failed

    async def reads_a_validation_error_as_a_tool_error(self) -> None:
        failed = await self._peer.call("add", {"a": "one", "b": 2})
        assert failed["isError"] is True, failed
        assert not self._strict or "/a" in text(failed), failed

    async def is_refused_an_unknown_tool(self) -> None:
        try:
            answer = await self._peer.call("no_such_tool", {})
        except Refused as refused:
            assert refused.code == -32602, refused
        else:
            assert not self._strict and answer["isError"] is True, answer

    async def follows_the_progress_of_a_slow_tool(self) -> None:
        seen: list[float] = []

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            seen.append(progress)

        done = await self._peer.call("slow", {"steps": 5}, on_progress)
        assert text(done) == "done", done
        assert seen == [1, 2, 3, 4, 5], seen

    async def is_answered_at_once_while_a_slow_tool_runs(self) -> bool:
        if self._peer.login:
            # The SDK's login sends no request before it has received the head of the last response.
            return False
        slow = asyncio.create_task(self._peer.call("slow", {"steps": 25}))
        await asyncio.sleep(0)
        await self._peer.call("echo", {"text": "quick"})
        assert not slow.done(), "the quick call waited for the slow one"
        await slow
        return True

    async def cancels_a_slow_tool(self) -> bool:
        if not self._peer.cancels:
            return False
        begun = asyncio.Event()

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            begun.set()

        call = asyncio.create_task(self._peer.call("slow", {"steps": FORGOTTEN}, on_progress))
        await begun.wait()
        call.cancel()
        assert isinstance((await asyncio.gather(call, return_exceptions=True))[0], asyncio.CancelledError)
        assert text(await self._peer.call("echo", {"text": "still here"})) == "still here"
        return True

    async def pings(self) -> bool:
        if self._peer.legacy:
            await self._peer.ping()
        return self._peer.legacy

    async def sees_progress_before_the_call_is_over(self) -> bool:
        if not self._strict:
            return False
        begun = asyncio.Event()

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            begun.set()

        waiting = asyncio.create_task(self._peer.call("wait", {}, on_progress))
        await begun.wait()
        assert text(await self._peer.call("go", {})) == "gone"
        assert text(await waiting) == "waited"
        return True

    async def survives_a_panic_in_a_tool(self) -> bool:
        if not self._strict:
            return False
        try:
            raise AssertionError(await self._peer.call("panic", {}))
        except Refused as refused:
            assert refused.code == -32603, refused
        assert text(await self._peer.call("echo", {"text": "alive"})) == "alive"
        return True

    async def survives_a_tool_that_prints_to_standard_output(self) -> bool:
        if not self._strict:
            return False
        assert text(await self._peer.call("print", {})) == "printed"
        return True

    async def gets_other_scopes_for_a_tool_that_needs_them(self) -> bool:
        login = self._peer.login
        if login is None or not login.has_document:
            return False
        assert login.logins == 1, login.logins
        assert text(await self._peer.call("write", {})) == "ann writes"
        assert login.logins == 2, login.logins
        return True

    async def gets_other_tokens_once_its_own_are_revoked(self) -> bool:
        login = self._peer.login
        if login is None:
            return False
        logins = login.logins
        await login.revoke()
        assert text(await self._peer.call("echo", {"text": "again"})) == "again"
        assert login.logins > logins, "a token that was revoked must be refused"
        return True


async def check(peer: Peer, strict: bool, person: Person) -> None:
    """Run the checks in order; the first failure ends the script. Print one line of JSON."""
    _mode, _strict, command, args = arguments()
    match command:
        case "nodes":
            held = await check_nodes(peer, args[0])
        case "rolling":
            held = await check_rolling(peer, person, args[0])
        case _:
            held = await check_features(peer, strict, person)
    print(json.dumps({"revision": peer.revision, "checks": held}, separators=(",", ":")))


async def check_features(peer: Peer, strict: bool, person: Person) -> list[str]:
    tools = {tool["name"] for tool in await peer.list_tools()}
    if "everything_echo" in tools:
        return await hold(GatewayChecks(peer, person, tools), vars(GatewayChecks))
    checks = Checks(peer, strict, person)
    # The first check lists the tools: by then it is known whether the server has the features.
    features = (name for name in vars(Features) if checks._has("delete"))
    return await hold(checks, chain(vars(Checks), features))


async def hold(checks: Any, names: Iterable[str]) -> list[str]:
    """Run the checks in order, and return the names of those that apply. The names with an underscore are no checks."""
    held: list[str] = []
    for name in names:
        if name.startswith("_"):
            continue
        try:
            applies = await getattr(checks, name)() is not False
        except Exception as error:
            raise AssertionError(f"{name.replace('_', ' ')}: {error!r}") from error
        if applies:
            held.append(name.replace("_", " "))
    return held


def arguments() -> tuple[str, bool, str, list[str]]:
    """MODE, whether to be strict, COMMAND, ARGS."""
    mode, strictness, command, *args = sys.argv[1:]
    return mode, strictness == "strict", command, args
