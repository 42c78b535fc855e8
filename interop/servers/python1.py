"""A server of the Python SDK 1.x, with the tools of `interop-server`."""

import asyncio

from mcp.server.fastmcp import Context, FastMCP
from mcp.server.fastmcp.exceptions import ToolError

server = FastMCP("interop-python1")


@server.tool()
def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


@server.tool()
def divide(a: float, b: float) -> float:
    """Divide a by b."""
    if b == 0:
        raise ToolError("b must not be 0")
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


server.run()
