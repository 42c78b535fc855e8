"""The checks of every Python client against a server with the prompts, resources and questions of `interop-server`.

The twin of `features.mjs`.
"""

import base64
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

# The contents of `memo://pixel`.
PIXEL = base64.b64encode(bytes([0, 255, 127])).decode()

SAMPLED = {"role": "assistant", "model": "a-model", "stopReason": "endTurn"}
ROOTS = {"roots": [{"uri": "file:///home/moon", "name": "moon"}]}


class Refused(Exception):
    """The server returned a protocol error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class Person:
    """The answers of the user, in order, and the questions that were asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.answers: list[dict[str, Any]] = []

    def elicit(self, params: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(params)
        assert self.answers, f"unexpected question: {params['message']}"
        return self.answers.pop(0)


def sample(params: dict[str, Any]) -> dict[str, Any]:
    """The response of the model."""
    content = params["messages"][0]["content"]
    content = content[0] if isinstance(content, list) else content
    return SAMPLED | {"content": {"type": "text", "text": f'because of "{content["text"]}"'}}


class FeaturePeer(Protocol):
    """The methods that an adapter adds for the features."""

    async def prompts(self) -> list[dict[str, Any]]: ...
    async def prompt(self, name: str, arguments: dict[str, str]) -> dict[str, Any]: ...
    async def resources(self) -> list[dict[str, Any]]: ...
    async def templates(self) -> list[dict[str, Any]]: ...
    async def read(self, uri: str) -> list[dict[str, Any]]: ...
    async def complete(self, ref: dict[str, str], argument: dict[str, str]) -> dict[str, Any]: ...
    async def updated(self, uri: str, run: Callable[[], Awaitable[Any]]) -> None: ...
    async def logs(self, level: str, name: str) -> list[dict[str, Any]]: ...


def text(result: dict[str, Any]) -> str:
    assert result["content"][0]["type"] == "text", result
    return result["content"][0]["text"]


class Features:
    """Checks as in `Checks`, for servers that have the tool `delete`."""

    _peer: Any
    _person: Person
    _strict: bool

    async def lists_prompts_and_their_arguments(self) -> None:
        review = next(prompt for prompt in await self._peer.prompts() if prompt["name"] == "review")
        required = {argument["name"]: bool(argument.get("required")) for argument in review["arguments"]}
        assert required == {"code": True, "language": False}, required

    async def gets_a_prompt(self) -> None:
        result = await self._peer.prompt("review", {"code": "fn main() {}", "language": "rust"})
        message = result["messages"][0]
        assert message["role"] == "user", message
        assert "rust" in message["content"]["text"] and "fn main" in message["content"]["text"], message

    async def is_refused_a_prompt_without_its_required_argument(self) -> None:
        await self._refuses(self._peer.prompt("review", {"language": "rust"}), -32602)

    async def lists_resources_and_templates(self) -> None:
        uris = sorted(resource["uri"] for resource in await self._peer.resources())
        assert [uri for uri in uris if uri.startswith("memo:")] == ["memo://greeting", "memo://pixel"], uris
        templates = [template["uriTemplate"] for template in await self._peer.templates()]
        assert "memo://pages/{topic}/{page}" in templates, templates

    async def reads_text_bytes_and_a_template(self) -> None:
        greeting = (await self._peer.read("memo://greeting"))[0]
        assert (greeting["uri"], greeting["mimeType"]) == ("memo://greeting", "text/plain"), greeting
        assert greeting["text"].startswith("hello"), greeting
        pixel = (await self._peer.read("memo://pixel"))[0]
        assert (pixel["mimeType"], pixel["blob"]) == ("image/png", PIXEL), pixel
        page = (await self._peer.read("memo://pages/caf%C3%A9/7"))[0]
        assert page["text"] == "page 7 of café", page

    async def is_refused_a_resource_that_is_not_there(self) -> None:
        await self._refuses(self._peer.read("memo://nothing"), -32002 if self._peer.revision < "2026" else -32602)

    async def completes_an_argument_of_a_prompt_and_of_a_template(self) -> None:
        languages = await self._peer.complete({"type": "ref/prompt", "name": "review"}, {"name": "language", "value": "r"})
        assert languages["values"] == ["rust"], languages
        template = {"type": "ref/resource", "uri": "memo://pages/{topic}/{page}"}
        topics = await self._peer.complete(template, {"name": "topic", "value": "te"})
        assert topics["values"] == ["tea", "teak"], topics

    async def hears_of_a_resource_that_was_subscribed_to(self) -> None:
        await self._peer.updated("memo://greeting", lambda: self._peer.call("touch", {}))
        greeting = (await self._peer.read("memo://greeting"))[0]
        assert greeting["text"].startswith("hello again"), greeting

    async def reads_log_messages_of_the_level_that_it_asked_for(self) -> None:
        logs = await self._peer.logs("warning", "shout")
        assert [(log["level"], log["data"]) for log in logs] == [("warning", {"msg": "loud"})], logs

    async def is_asked_twice_and_the_step_between_is_done_once(self) -> None:
        self._person.answers = [
            {"action": "accept", "content": {"name": "moon"}},
            {"action": "accept", "content": {"sure": True}},
        ]
        done = await self._peer.call("delete", {"project": "moon"})
        assert text(done) == "deleted moon, counted once", done
        who, sure = self._person.asked
        assert "Which project" in who["message"] and who["requestedSchema"]["required"] == ["name"], who
        assert "moon with 3 files" in sure["message"], sure

    async def declines_and_cancels(self) -> None:
        for action in ["decline", "cancel"]:
            self._person.asked, self._person.answers = [], [{"action": action}]
            refused = await self._peer.call("delete", {"project": "moon"})
            assert refused["isError"] is True, refused
            assert len(self._person.asked) == 1, self._person.asked

    async def lends_its_model(self) -> None:
        said = await self._peer.call("think", {"question": "why?"})
        assert text(said) == 'the model says: because of "why?"', said

    async def shows_its_roots(self) -> None:
        assert text(await self._peer.call("where", {})) == "file:///home/moon"

    async def _refuses(self, request: Awaitable[Any], code: int) -> None:
        try:
            raise AssertionError(await request)
        except Refused as refused:
            assert not self._strict or refused.code == code, refused
