"""A server of the Python SDK 1.x, with what `interop-server` offers. The arguments are none, `streamable-http PORT` or `sse PORT`."""

import asyncio
import sys
from urllib.parse import unquote

from mcp.server.fastmcp import Context, FastMCP
from mcp.types import Completion, PromptReference, SamplingMessage, TextContent
from pydantic import AnyUrl, BaseModel

LANGUAGES = ["go", "python", "rust"]
TOPICS = ["tea", "teak", "tulip"]

transport, port = sys.argv[1:] or ["stdio", "0"]
server = FastMCP("interop-python1", port=int(port))


@server.tool()
def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


@server.tool()
def divide(a: float, b: float) -> float:
    """Divide a by b."""
    if b == 0:
        raise ValueError("b must not be 0")
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


memos = {"greeting": "hello"}


@server.resource("memo://greeting", mime_type="text/plain")
def greeting() -> str:
    return memos["greeting"]


@server.resource("memo://pixel", mime_type="image/png")
def pixel() -> bytes:
    return bytes([0, 255, 127])


@server.resource("memo://pages/{topic}/{page}", mime_type="text/plain")
def page(topic: str, page: str) -> str:
    return f"page {page} of {unquote(topic)}"


@server.tool()
async def touch(ctx: Context) -> str:
    """Change the greeting."""
    memos["greeting"] = "hello again"
    await ctx.session.send_resource_updated(AnyUrl("memo://greeting"))
    return "touched"


@server.completion()
async def complete(ref, argument, _context):
    known = LANGUAGES if isinstance(ref, PromptReference) else TOPICS
    return Completion(values=[value for value in known if value.startswith(argument.value)])


class Which(BaseModel):
    name: str


class Sure(BaseModel):
    sure: bool


@server.tool()
async def delete(project: str, ctx: Context) -> str:
    """Delete a project, after two questions."""
    which = await ctx.elicit("Which project shall be deleted?", Which)
    if which.action != "accept":
        raise ValueError("nothing was deleted")
    sure = await ctx.elicit(f"Really delete {which.data.name} with 3 files?", Sure)
    if sure.action != "accept" or not sure.data.sure:
        raise ValueError("nothing was deleted")
    return f"deleted {which.data.name}, counted once"


@server.tool()
async def think(question: str, ctx: Context) -> str:
    """Ask the client's model."""
    content = TextContent(type="text", text=question)
    thought = await ctx.session.create_message([SamplingMessage(role="user", content=content)], max_tokens=100)
    return f"the model says: {thought.content.text}"


@server.tool()
async def where(ctx: Context) -> str:
    """Tell the client's roots."""
    return "\n".join(str(root.uri) for root in (await ctx.session.list_roots()).roots)


@server.tool()
async def shout(ctx: Context) -> str:
    """Log."""
    await ctx.session.send_log_message("warning", {"msg": "loud"})
    return "shouted"


server.run(transport)
