"""A server of FastMCP 4.2 and later with the skills in `../skills`. With an argument it lies about the `size` or the `digest` of a
`SKILL.md`."""

import sys
from pathlib import Path

from fastmcp import FastMCP
from fastmcp.skills.provider import SkillFileResource, SkillsDirectoryProvider

DIRECTORY = Path(__file__).parent.parent / "skills"


class Liar(SkillsDirectoryProvider):
    async def read_file(self, resource: SkillFileResource) -> bytes:
        content = await super().read_file(resource)
        if lie == "size":
            return content + b"More.\n"
        return content.replace(b"Read", b"Skip")


lie = sys.argv[1] if len(sys.argv) > 1 else None
provider = Liar if lie else SkillsDirectoryProvider
FastMCP("interop-skills", providers=[provider(DIRECTORY)]).run(show_banner=False)
