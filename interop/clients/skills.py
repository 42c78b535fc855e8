"""The client of FastMCP 4.2 and later, against a server with the skills in `../skills`. MODE is ignored: it knows skills only in the
modern era. The arguments are those of `checks.mjs`, over stdio."""

import asyncio
import json
import sys
from pathlib import Path

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.skills import SkillsClientExtension

URI = "skill://refunds/SKILL.md"
OWN = Path(__file__).parent.parent / "skills" / "refunds"


async def main() -> None:
    _mode, _strict, command, *args = sys.argv[1:]
    transport = StdioTransport(command, args)
    async with Client(transport, extensions=[SkillsClientExtension()], mode="auto") as client:
        listed = await client.list_skills()
        assert [str(skill.uri) for skill in listed] == [URI], listed
        # It verifies the size and the digest of each file, and the frontmatter.
        skill = await client.read_skill(URI)
        for path in ["SKILL.md", "references/limits.md", "logo.png"]:
            assert skill.files[path] == (OWN / path).read_bytes(), path
        assert len(skill.files) == 3, list(skill.files)
    print(json.dumps({"checks": ["lists and verifies skills"]}, separators=(",", ":")))


asyncio.run(main())
