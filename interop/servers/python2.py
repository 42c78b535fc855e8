"""A server of the Python SDK 2.x, with the features of `interop-server`. It serves both eras. The arguments are none, `streamable-http PORT`,
`sse PORT` or `protected PORT URL ISSUER`."""

import sys
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp.types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    CreateMessageResult,
    ListRootsResult,
    PromptReference,
    ResourceTemplateReference,
    SamplingMessage,
    TextContent,
)
from opentelemetry.trace import get_current_span

from features import Sure, Which, memos, offer, possible
from protection import protection

transport, port, *issuer = sys.argv[1:] or ["stdio", "0"]
server = MCPServer("interop-python2", **(protection(*issuer) if issuer else {}))
offer(server, Context, ToolError)


@server.resource("memo://pages/{topic}/{page}", mime_type="text/plain")
def page(topic: str, page: str) -> str:
    return f"page {page} of {topic}"


@server.tool()
async def touch(ctx: Context) -> str:
    """Change the greeting."""
    memos["greeting"] = "hello again"
    await ctx.notify_resource_updated("memo://greeting")
    return "touched"


@server.tool()
async def trace() -> str:
    """Say which trace the call belongs to."""
    return format(get_current_span().get_span_context().trace_id, "032x")


@server.completion()
async def complete(
    ref: PromptReference | ResourceTemplateReference, argument: CompletionArgument, _context: CompletionContext | None
) -> Completion:
    return Completion(values=possible(isinstance(ref, PromptReference), argument.value))


async def which() -> Elicit[Which]:
    return Elicit("Which project shall be deleted?", Which)


async def sure(which: Annotated[Which, Resolve(which)]) -> Elicit[Sure]:
    return Elicit(f"Really delete {which.name} with 3 files?", Sure)


@server.tool()
async def delete(project: str, which: Annotated[Which, Resolve(which)], sure: Annotated[Sure, Resolve(sure)]) -> str:
    """Delete a project, after two questions."""
    if not sure.sure:
        raise ToolError("nothing was deleted")
    return f"deleted {which.name}, counted once"


async def thought(question: str) -> Sample:
    content = TextContent(type="text", text=question)
    return Sample([SamplingMessage(role="user", content=content)], max_tokens=100)


@server.tool()
async def think(question: str, thought: Annotated[CreateMessageResult, Resolve(thought)]) -> str:
    """Ask the client's model."""
    return f"the model says: {thought.content.text}"


async def roots() -> ListRoots:
    return ListRoots()


@server.tool()
async def where(roots: Annotated[ListRootsResult, Resolve(roots)]) -> str:
    """Tell the client's roots."""
    return "\n".join(str(root.uri) for root in roots.roots)


@server.tool()
async def shout(ctx: Context) -> str:
    """Log."""
    await ctx.info({"msg": "quiet"})
    await ctx.warning({"msg": "loud"})
    return "shouted"


if transport == "stdio":
    server.run()
else:
    server.run("streamable-http" if issuer else transport, port=int(port))
