"""The checks of Python clients of a server with two nodes: the session survives every failure.

The twin of `nodes.mjs`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol
from urllib.parse import urljoin
from urllib.request import urlopen

from features import Refused, text

# The number of times that a node is killed.
KILLS = 2
# The time limit of a call in seconds: longer than the time until the stream of a lost node ends.
LIMIT = 60
# The time limit for recovery after an event, in seconds.
RECOVERY = 60

Way = Callable[[], Awaitable[None]]


class Peer(Protocol):
    legacy: bool

    async def call(self, name: str, arguments: dict[str, Any], on_progress: Any = None) -> dict[str, Any]: ...


class NodeChecks:
    """Events of the nodes, and calls during them."""

    def __init__(self, peer: Peer, url: str) -> None:
        self._peer = peer
        self._url = url

    async def happens(self, event: str) -> None:
        await asyncio.to_thread(lambda: urlopen(urljoin(self._url, f"/control/{event}"), b"", LIMIT).close())

    async def _call(self, name: str, arguments: dict[str, Any], on_progress: Any = None) -> str:
        return text(await asyncio.wait_for(self._peer.call(name, arguments, on_progress), LIMIT))

    async def echoes(self) -> None:
        assert await self._call("echo", {"text": "here"}) == "here"

    async def follows(self) -> None:
        seen: list[float] = []

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            seen.append(progress)

        assert await self._call("slow", {"steps": 3}, on_progress) == "done"
        assert seen == [1, 2, 3], seen

    async def answers(self) -> None:
        assert (await self._call("think", {"question": "why?"})).startswith("the model says: because of")

    async def works(self, *ways: Way) -> None:
        """Make each kind of call at each node."""
        for way in [*ways, *ways]:
            await way()

    async def works_again(self) -> None:
        end = asyncio.get_running_loop().time() + RECOVERY
        while True:
            try:
                return await self.works(self.echoes, self.follows, self.answers)
            except Exception:
                if asyncio.get_running_loop().time() > end:
                    raise
            await asyncio.sleep(0.2)

    async def is_killed(self) -> str:
        """Kill a node. Return the outcome of the call that it served."""
        begun = asyncio.Event()

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            begun.set()

        under_way = asyncio.create_task(self._call("slow", {"steps": 1000}, on_progress))
        await begun.wait()
        await self.happens("kill")
        # New calls work, and the call in flight ends in time.
        await self.works(self.echoes, self.follows, self.answers)
        (ended,) = await asyncio.gather(under_way, return_exceptions=True)
        assert isinstance(ended, Exception), ended
        if self._peer.legacy:
            # Streams of sessions are resumed at the other node, which knows that this node was lost.
            assert isinstance(ended, Refused) and ended.code == -32603, ended
        return f"a call of a node that was killed: {ended!r}"


async def check_nodes(peer: Peer, url: str) -> list[str]:
    """Run the checks in order; the first failure ends the script. Return the events, and the outcomes of the calls in flight."""
    nodes = NodeChecks(peer, url)
    await nodes.works(nodes.echoes, nodes.follows, nodes.answers)
    held = [await nodes.is_killed() for _ in range(KILLS)]
    for event in ["unsubscribe", "restart", "fail-over"]:
        await nodes.happens(event)
        await nodes.works_again()
        held.append(event)
    await nodes.happens("hang")
    # Calls that need no store continue.
    await nodes.works(nodes.echoes, nodes.follows)
    await nodes.happens("go-on")
    await nodes.works_again()
    return [*held, "hang"]
