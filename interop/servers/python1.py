"""A server of the Python SDK 1.x, with the features of `interop-server`. The arguments are none, `streamable-http PORT`,
`sse PORT` or `protected PORT URL ISSUER`."""

import sys
from urllib.parse import unquote

from mcp.server.fastmcp import Context, FastMCP
from mcp.types import Completion, PromptReference, SamplingMessage, TextContent
from pydantic import AnyUrl

from features import Sure, Which, memos, offer, possible
from protection import protection

transport, port, *issuer = sys.argv[1:] or ["stdio", "0"]
server = FastMCP("interop-python1", port=int(port), **(protection(*issuer) if issuer else {}))
offer(server, Context, ValueError)


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
    return Completion(values=possible(isinstance(ref, PromptReference), argument.value))


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


server.run("streamable-http" if issuer else transport)
