"""A server of FastMCP whose tools become tasks, like those of `interop-server` in `tasks.rs`. The arguments are none, or `http PORT`."""

import asyncio
import sys
from datetime import timedelta

from fastmcp import Context, FastMCP
from fastmcp.dependencies import Progress
from fastmcp.exceptions import ToolError
from fastmcp.utilities.tasks import TaskConfig
from fastmcp_tasks import TasksExtension
from mcp.types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

transport, port = sys.argv[1:] or ["stdio", "0"]
server = FastMCP("interop-fastmcp")
server.add_extension(TasksExtension())
soon = timedelta(milliseconds=50)


@server.tool(task=TaskConfig(mode="optional", poll_interval=soon))
async def mill(sacks: int, progress: Progress = Progress()) -> str:
    """Mill sacks of grain, 20 ms for each."""
    await progress.set_total(sacks)
    for sack in range(1, sacks + 1):
        await asyncio.sleep(0.02)
        await progress.increment()
        await progress.set_message(f"sack {sack}")
    return f"{sacks} sacks of flour"


def form(message: str, name: str, kind: str) -> ElicitRequest:
    schema = {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


@server.tool(task=TaskConfig(mode="required", poll_interval=soon))
async def bake(ctx: Context) -> str | InputRequiredResult:
    """Bake what the user wants."""
    answers = ctx.input_responses or {}
    flour = ctx.request_state
    if "flour" in answers:
        if answers["flour"].action != "accept":
            raise ToolError("nothing was baked")
        flour = answers["flour"].content["flour"]
    if "loaves" in answers:
        return f"{answers['loaves'].content['loaves']} loaves of {flour}"
    if flour:
        return InputRequiredResult(
            input_requests={"loaves": form(f"How many loaves of {flour}?", "loaves", "integer")}, request_state=flour
        )
    return InputRequiredResult(input_requests={"flour": form("Of which flour?", "flour", "string")})


@server.tool(task=TaskConfig(mode="required", poll_interval=soon))
async def burn() -> str:
    """Fail."""
    await asyncio.sleep(0.02)
    raise ToolError("it is burnt")


if transport == "stdio":
    server.run(show_banner=False)
else:
    server.run("http", port=int(port), show_banner=False)
