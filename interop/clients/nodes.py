"""The checks of Python clients whose server is two nodes, to which something happens: a session goes on, whatever does.

The twin of `nodes.mjs`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol
from urllib.parse import urljoin
from urllib.request import urlopen

from features import Refused, text

# How often a node is killed.
KILLS = 2
# How long a call may take, in seconds: longer than it takes until a stream is ended whose node is gone.
LIMIT = 12
# How long it may take until all is well after something has happened, in seconds.
RECOVERY = 20

Way = Callable[[], Awaitable[None]]


class Peer(Protocol):
    legacy: bool

    async def call(self, name: str, arguments: dict[str, Any], on_progress: Any = None) -> dict[str, Any]: ...


class NodeChecks:
    """What happens to the nodes, and the calls that go on."""

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
        """Each way to call, at each node."""
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
        """A node is killed. Returns what became of the call that it served."""
        begun = asyncio.Event()

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            begun.set()

        under_way = asyncio.create_task(self._call("slow", {"steps": 1000}, on_progress))
        await begun.wait()
        await self.happens("kill")
        # A new call is not the worse for it, while the other one is over in its own time.
        await self.works(self.echoes, self.follows, self.answers)
        (ended,) = await asyncio.gather(under_way, return_exceptions=True)
        assert isinstance(ended, Exception), ended
        if self._peer.legacy:
            # Streams of sessions are resumed, at the other node, which knows what became of this one.
            assert isinstance(ended, Refused) and ended.code == -32603, ended
        return f"a call of a node that was killed: {ended!r}"


async def check_nodes(peer: Peer, url: str) -> list[str]:
    """Run them in order; the first that fails ends the script. Return what happened, and what became of the calls under way."""
    nodes = NodeChecks(peer, url)
    await nodes.works(nodes.echoes, nodes.follows, nodes.answers)
    held = [await nodes.is_killed() for _ in range(KILLS)]
    for event in ["unsubscribe", "restart", "fail-over"]:
        await nodes.happens(event)
        await nodes.works_again()
        held.append(event)
    await nodes.happens("hang")
    # What takes nothing but memory goes on.
    await nodes.works(nodes.echoes, nodes.follows)
    await nodes.happens("go-on")
    await nodes.works_again()
    return [*held, "hang"]
