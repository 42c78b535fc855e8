"""The checks of Python clients of a server with three nodes behind nginx: each call runs once and is answered.

The twin of `rolling.mjs`.
"""

import asyncio
from typing import Any, Protocol
from urllib.parse import urljoin
from urllib.request import Request, urlopen

# The number of concurrent calls.
AT_ONCE = 4
# The number of sequential calls after which each node knows the session.
KNOWN = 6
# The pause before a call, in seconds.
PAUSE = 0.02
EVENTS = ["roll", "stop", "fill", "restart"]


class Peer(Protocol):
    async def call(self, name: str, arguments: dict[str, Any], on_progress: Any = None) -> dict[str, Any]: ...


class Sure:
    """A user who gives every question the same answer; replaces a `Person`."""

    def elicit(self, params: dict[str, Any]) -> dict[str, Any]:
        return {"action": "accept", "content": {"sure": True}}


async def control(url: str, what: str, method: str) -> str:
    def ask() -> str:
        with urlopen(Request(urljoin(url, f"/control/{what}"), method=method)) as answer:
            return answer.read().decode()

    return await asyncio.to_thread(ask)


async def check_rolling(peer: Peer, person: Any, url: str) -> list[str]:
    """Return the events."""
    person.elicit = Sure().elicit
    number = 0

    async def order() -> None:
        nonlocal number
        mine = number
        number += 1
        await asyncio.sleep(PAUSE)
        done = await peer.call("order", {"number": mine, "asks": mine % 2 == 1})
        assert done["content"][0]["text"] == f"ordered {mine}", done

    for event in EVENTS:
        for _ in range(KNOWN):
            await order()
        is_over = asyncio.Event()

        async def happens(event: str = event, is_over: asyncio.Event = is_over) -> None:
            await control(url, event, "POST")
            is_over.set()

        async def orders(is_over: asyncio.Event = is_over) -> None:
            while not is_over.is_set():
                await order()

        await asyncio.gather(happens(), *(orders() for _ in range(AT_ONCE)))
    made = sorted(int(line) for line in (await control(url, "orders", "GET")).split())
    assert made == list(range(number)), made
    return [*EVENTS, f"{number} orders"]
