"""A person's yes to what costs or destroys: who is asked, what is a yes, what it is good for, and codes where nobody can be asked."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mcpfactory_runtime import Context, Server
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.protocol.errors import INVALID_PARAMS
from mcpfactory_runtime.revisions import REVISIONS, Revision
from mcpfactory_runtime.server.request_state import CODE_LIFETIME
from mcpfactory_runtime.testing import connect
from tests.runtime.wire.questions import ASKED, converse, eliciting
from tests.runtime.wire.raw_client import Json, speak

pytestmark = pytest.mark.anyio
everywhere = pytest.mark.parametrize("revision", REVISIONS.values(), ids=str)
YES = {"action": "accept", "content": {"go_ahead": True}}


class Stove:
    """What was burnt, and whether burning needs nobody's yes."""

    def __init__(self) -> None:
        self.burnt: list[str] = []
        self.free = False
        self.looked = 0
        self.later: Callable[[], None] = lambda: None

    def is_free(self) -> bool:
        self.looked += 1
        free = self.free
        self.later()
        return free

    def server(self) -> Server:
        server = Server("stove")

        @server.tool
        async def burn(ctx: Context, book: str = "Emma", copy: int = 1, confirm: str = "") -> str:
            """Burn a copy."""
            await ctx.consent(f"Burn {book}", copy, confirm=confirm, otherwise="Nothing was burnt")
            self.burnt.append(f"{book} {copy}")
            return "ashes"

        @server.tool
        async def sell(ctx: Context, confirm: str = "") -> str:
            """Sell, in the words of burn."""
            await ctx.consent("Burn Emma", 1, confirm=confirm)
            return "sold"

        @server.tool
        async def burn_two(ctx: Context, first: str = "Emma", second: str = "Persuasion") -> str:
            """Burn one, then another one."""
            for book in (first, second):
                await ctx.consent(f"Burn {book}", hint="burn it yourself")
            self.burnt += [first, second]
            return "ashes"

        @server.tool
        def burn_in_a_thread(ctx: Context) -> str:
            """Burn from a thread."""
            ctx.wait(ctx.consent("Burn Emma"))
            return "ashes"

        @server.tool
        async def maybe(ctx: Context, confirm: str = "") -> bool:
            """Burn where it is free, or somebody agrees."""
            asked = await ctx.consent("Burn Emma", confirm=confirm, unless=self.is_free)
            self.burnt.append("Emma")
            return asked

        return server


@pytest.fixture
def stove() -> Stove:
    return Stove()


@asynccontextmanager
async def opened(stove: Stove, revision: Revision, *answers: Any) -> AsyncIterator[tuple[Client, list[str]]]:
    """A client, whose person gives these answers in turn, and the questions that they read; without answers it cannot ask."""
    read: list[str] = []
    left = iter(answers)

    def elicit(params: Json) -> Any:
        read.append(params["message"])
        answer = next(left)
        if isinstance(answer, Exception):
            raise answer
        return answer

    options = {"elicitation": elicit} if answers else {}
    async with connect(stove.server(), revision=revision.name, **options) as client:
        yield client, read


async def said(client: Client, tool: str = "burn", **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    text: str = result["content"][0]["text"]
    return f"error: {text}" if result.get("isError") else text


def code_of(text: str) -> str:
    found = re.search(r'confirm="([a-z2-7]{32})"', text)
    assert found, text
    return found[1]


@eliciting
@pytest.mark.parametrize(
    "answer",
    [
        {"action": "decline"},
        {"action": "cancel"},
        {"action": "decline", "content": {"go_ahead": True}},
        {"action": "accept", "content": {"go_ahead": False}},
        {"action": "accept", "content": {"go_ahead": "true"}},
        {"action": "accept", "content": {"go_ahead": 1}},
        {"action": "accept", "content": {"go_ahead": [True]}},
        {"action": "accept", "content": {"yes": True}},
        {"action": "accept", "content": {}},
        {"action": "accept", "content": [True]},
        {"action": "accept"},
        {"action": "sure", "content": {"go_ahead": True}},
        {},
    ],
    ids=str,
)
async def test_whatever_is_no_ticked_form_is_a_no(stove: Stove, revision: Revision, answer: Json) -> None:
    async with opened(stove, revision, answer) as (client, _):
        assert await said(client) == "error: Nothing was burnt: the person did not agree. (Burn Emma)"
    assert stove.burnt == []


@pytest.mark.parametrize("revision", [one for one in ASKED if one.modern], ids=str)
async def test_a_yes_is_not_carried_to_other_words_or_values(stove: Stove, revision: Revision) -> None:
    """What comes back with a sealed state answers the question of that state alone."""
    async with speak(stove.server(), revision, elicitation={}) as client:
        asked = (await client.ask("tools/call", {"name": "burn", "arguments": {"copy": 1}}))["result"]
        other = (await client.ask("tools/call", {"name": "burn", "arguments": {"copy": 2}}))["result"]
        assert set(asked["inputRequests"]).isdisjoint(other["inputRequests"])
        again = {
            "name": "burn",
            "arguments": {"copy": 2},
            "inputResponses": dict.fromkeys(asked["inputRequests"], YES),
        }
        assert "inputRequests" in (await client.ask("tools/call", again))["result"]
        stolen = await client.ask("tools/call", {**again, "requestState": asked["requestState"]})
        assert stolen["error"]["code"] == INVALID_PARAMS
        mixed = (await client.ask("tools/call", {**again, "requestState": other["requestState"]}))["result"]
        assert mixed["inputRequests"].keys() == other["inputRequests"].keys()
    assert stove.burnt == []


@everywhere
async def test_who_can_be_asked_by_forms_is_asked(stove: Stove, revision: Revision) -> None:
    """`{}` means forms, as in revisions that know nothing else; a revision without elicitation has none, whatever is declared."""
    modes = [{}] if len(revision.elicitation_modes) == 1 else [{}, {"form": {}}, {"form": {}, "url": {}}]
    for declared in modes if revision in ASKED else []:
        async with speak(stove.server(), revision, elicitation=declared) as client:
            assert (await converse(client, "burn", YES))["result"]["content"][0]["text"] == "ashes"
    unable: list[Json] = [{}]
    unable += [{"elicitation": {"url": {}}}] if len(revision.elicitation_modes) > 1 else []
    unable += [] if revision in ASKED else [{"elicitation": {}}]
    for capabilities in unable:
        async with speak(stove.server(), revision, **capabilities) as client:
            refused = await client.call("burn")
            assert refused["isError"]
            assert "this client cannot ask one. (Burn Emma)" in refused["content"][0]["text"]


@everywhere
async def test_a_code_of_the_refusal_agrees_once_to_the_same(stove: Stove, revision: Revision) -> None:
    async with opened(stove, revision) as (client, _):
        refused = await said(client)
        assert refused.startswith("error: Nothing was burnt: a person must agree to this first")
        assert "(Burn Emma)" in refused
        code = code_of(refused)
        for other in ({"book": "Persuasion"}, {"copy": 2}):
            assert code_of(await said(client, **other, confirm=code)) != code
        assert code_of(await said(client, "sell", confirm=code)) != code, "of another tool, with the same sentence"
        assert stove.burnt == []
        assert await said(client, confirm=f" {code.upper()}\n") == "ashes"
        again = await said(client, confirm=code)
        assert "was used already" in again
        assert stove.burnt == ["Emma 1"]
        assert await said(client, confirm=code_of(again)) == "ashes"


@everywhere
@pytest.mark.parametrize(
    "guess", ["yes", "true", "Burn Emma", "Burn Emma. Go ahead?", "a" * 32, "ä" * 32, "a" * 31, "1", "=" * 8]
)
async def test_a_code_cannot_be_made_up(stove: Stove, revision: Revision, guess: str) -> None:
    async with opened(stove, revision) as (client, _):
        first, second = code_of(await said(client, confirm=guess)), code_of(await said(client))
        assert first != second
        changed = first[:-1] + ("a" if first[-1] != "a" else "b")
        assert "error" in await said(client, confirm=changed)
        assert "error" in await said(client, confirm=first[:16] + second[16:])
    assert stove.burnt == []


async def test_a_code_is_good_for_ten_minutes(stove: Stove, monkeypatch: pytest.MonkeyPatch) -> None:
    began = time.time()
    async with opened(stove, ASKED[-1]) as (client, _):
        codes = [code_of(await said(client)) for _ in range(2)]
        monkeypatch.setattr(time, "time", lambda: began + CODE_LIFETIME - 5)
        assert await said(client, confirm=codes[0]) == "ashes"
        monkeypatch.setattr(time, "time", lambda: began + CODE_LIFETIME + 5)
        assert "too old" in await said(client, confirm=codes[1])
    assert stove.burnt == ["Emma 1"]


@eliciting
async def test_a_code_does_not_stand_for_a_person_who_can_be_asked(stove: Stove, revision: Revision) -> None:
    server = stove.server()
    async with connect(server, revision=revision.name) as client:
        code = code_of(await said(client))
    async with connect(server, revision=revision.name, elicitation=lambda _: {"action": "decline"}) as client:
        assert "did not agree" in await said(client, confirm=code)
    assert stove.burnt == []
