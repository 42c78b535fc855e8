"""The checks of every Python client against a gateway of `server-everything` (as `everything`) and `server-filesystem` (as `files`).

The twin of `gateway.mjs`.
"""

from typing import Any

from features import Person, text


class GatewayChecks:
    """Each public method is one check, run in the order of definition."""

    def __init__(self, peer: Any, person: Person, tools: set[str]) -> None:
        self._peer = peer
        self._person = person
        self._tools = tools

    async def lists_the_tools_of_all_servers(self) -> None:
        names = ["everything_echo", "everything_trigger-elicitation-request", "everything_trigger-sampling-request"]
        for name in [*names, "everything_get-roots-list", "files_list_allowed_directories"]:
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
