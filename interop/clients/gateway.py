"""The checks of every Python client against a gateway of the servers in `../servers.json`.

The twin of `gateway.mjs`.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from features import Person, text


# For a page of HTML, the server would install packages of npm first.
PAGE = "Steep it for three minutes."


def scratch() -> str:
    """The folder that the servers of this case have for their files."""
    return next(word.removeprefix("SCRATCH=") for word in sys.argv if word.startswith("SCRATCH="))


@asynccontextmanager
async def page() -> AsyncIterator[str]:
    """The URL of a page on this machine."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(PAGE)}\r\nConnection: close\r\n\r\n"
        writer.write((head + PAGE).encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/tea"


class GatewayChecks:
    """Each public method is one check, run in the order of definition."""

    def __init__(self, peer: Any, person: Person, tools: set[str]) -> None:
        self._peer = peer
        self._person = person
        self._tools = tools

    async def lists_the_tools_of_all_servers(self) -> None:
        names = ["everything_echo", "everything_trigger-elicitation-request", "everything_trigger-sampling-request"]
        names += ["everything_get-roots-list", "files_list_allowed_directories", "memory_create_entities"]
        for name in [*names, "time_convert_time", "git_git_log", "fetch_fetch"]:
            assert name in self._tools, f"tools/list must offer {name}: {self._tools}"

    async def calls_tools_of_two_servers(self) -> None:
        assert "is 3" in text(await self._peer.call("everything_get-sum", {"a": 1, "b": 2}))
        assert "Allowed directories" in text(await self._peer.call("files_list_allowed_directories", {}))

    async def follows_progress(self) -> None:
        seen: list[float] = []

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            seen.append(progress)

        arguments = {"duration": 0.5, "steps": 5}
        done = await self._peer.call("everything_trigger-long-running-operation", arguments, on_progress)
        assert "completed" in text(done), done
        assert seen == [1, 2, 3, 4, 5], seen

    async def reads_a_resource_of_a_template(self) -> None:
        contents = (await self._peer.read("demo://resource/dynamic/text/1"))[0]
        assert contents["uri"] == "demo://resource/dynamic/text/1", contents
        assert "Resource 1" in contents["text"], contents

    async def gets_and_completes_a_prompt(self) -> None:
        got = await self._peer.prompt("everything_args-prompt", {"city": "Lhasa"})
        assert "Lhasa" in got["messages"][0]["content"]["text"], got
        reference = {"type": "ref/prompt", "name": "everything_completable-prompt"}
        completed = await self._peer.complete(reference, {"name": "department", "value": "E"})
        assert completed["values"] == ["Engineering"], completed

    async def answers_a_question_that_names_its_server(self) -> None:
        self._person.answers.append({"action": "accept", "content": {"name": "Ada", "check": True}})
        answered = await self._peer.call("everything_trigger-elicitation-request", {})
        assert "Ada" in str(answered), answered
        assert self._person.asked[-1]["message"].startswith("everything: "), self._person.asked

    async def samples_for_a_server(self) -> None:
        sampled = await self._peer.call("everything_trigger-sampling-request", {"prompt": "tea", "maxTokens": 10})
        assert "because of" in text(sampled), sampled

    async def remembers_with_structured_results(self) -> None:
        entities = [{"name": "teapot", "entityType": "pot", "observations": ["is blue"]}]
        created = await self._peer.call("memory_create_entities", {"entities": entities})
        assert created["structuredContent"] == {"entities": entities}, created
        observations = [{"entityName": "teapot", "contents": ["is warm"]}]
        added = await self._peer.call("memory_add_observations", {"observations": observations})
        assert not added.get("isError"), added
        assert "teapot" in text(await self._peer.call("memory_search_nodes", {"query": "warm"}))
        assert "is blue" in (await self._peer.read("memory://knowledge-graph"))[0]["text"]

    async def is_told_of_a_changed_graph(self) -> bool:
        # A modern client has no session, and the process that is watched is not that which makes a change.
        if not self._peer.legacy:
            return False

        async def change() -> None:
            await self._peer.call("memory_delete_entities", {"entityNames": ["teapot"]})

        await self._peer.updated("memory://knowledge-graph", change)
        return True

    async def reads_an_error_of_a_server_about_its_arguments(self) -> None:
        failed = await self._peer.call("memory_create_entities", {"entities": 7})
        assert failed["isError"] is True, failed

    async def converts_a_time(self) -> None:
        arguments = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        converted = await self._peer.call("time_convert_time", arguments)
        assert "21:00" in text(converted), converted
        assert converted["structuredContent"], converted
        failed = await self._peer.call("time_get_current_time", {"timezone": "Mars/Base"})
        assert failed["isError"] is True, failed

    async def reads_a_repository(self) -> None:
        arguments = {"repo_path": f"{scratch()}/repository"}
        assert "first" in text(await self._peer.call("git_git_log", arguments | {"max_count": 1}))
        assert "nothing to commit" in text(await self._peer.call("git_git_status", arguments))
        failed = await self._peer.call("git_git_status", {"repo_path": "/"})
        assert failed["isError"] is True, failed

    async def fetches_a_page(self) -> None:
        async with page() as url:
            assert "three minutes" in text(await self._peer.call("fetch_fetch", {"url": url}))
            got = await self._peer.prompt("fetch_fetch", {"url": url})
            assert "three minutes" in got["messages"][0]["content"]["text"], got

    async def calls_all_servers_at_once(self) -> None:
        calls: dict[str, dict[str, Any]] = {
            "everything_echo": {"message": "hi"},
            "files_list_allowed_directories": {},
            "memory_read_graph": {},
            "time_get_current_time": {"timezone": "UTC"},
            "git_git_branch": {"repo_path": f"{scratch()}/repository", "branch_type": "local"},
        }
        for result in await asyncio.gather(*(self._peer.call(name, arguments) for name, arguments in calls.items())):
            assert not result.get("isError"), result
