"""The shared part of both Python servers: the features of `interop-server` that do not ask the client."""

import asyncio
from typing import Any

from pydantic import BaseModel

LANGUAGES = ["go", "python", "rust"]
TOPICS = ["tea", "teak", "tulip"]

memos = {"greeting": "hello"}


class Which(BaseModel):
    name: str


class Sure(BaseModel):
    sure: bool


def offer(server: Any, Context: type, Failure: type[Exception]) -> None:
    """Add them to a server. `Context` and `Failure` are the SDK's types for the context of a request and the error of a tool."""

    @server.tool()
    def add(a: float, b: float) -> float:
        """Add two numbers."""
        return a + b

    @server.tool()
    def divide(a: float, b: float) -> float:
        """Divide a by b."""
        if b == 0:
            raise Failure("b must not be 0")
        return a / b

    @server.tool()
    def echo(text: str) -> str:
        """Say it again."""
        return text

    @server.tool()
    async def slow(steps: int, ctx: Context) -> str:
        """Take some time."""
        for step in range(1, steps + 1):
            await ctx.report_progress(step, steps)
            await asyncio.sleep(0.02)
        return "done"

    @server.prompt()
    def review(code: str, language: str = "unknown") -> str:
        """Review code."""
        return f"Review this {language} code: {code}"

    @server.resource("memo://greeting", mime_type="text/plain")
    def greeting() -> str:
        return memos["greeting"]

    @server.resource("memo://pixel", mime_type="image/png")
    def pixel() -> bytes:
        return bytes([0, 255, 127])


def possible(of_prompt: bool, typed: str) -> list[str]:
    """Return the completions of an argument of a prompt or a template."""
    known = LANGUAGES if of_prompt else TOPICS
    return [value for value in known if value.startswith(typed)]
