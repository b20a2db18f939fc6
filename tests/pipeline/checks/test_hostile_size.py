"""What a server sends to be judged costs in proportion to its size, and kinds that are no words break nothing."""

from __future__ import annotations

from typing import Any

import pytest

from mcpfactory_pipeline.checks.bait import tempt
from mcpfactory_pipeline.checks.cascades import tool_of
from mcpfactory_pipeline.checks.exchange import WireExchange
from mcpfactory_pipeline.checks.questions import foreign_kinds
from mcpfactory_pipeline.checks.wire import conversation
from mcpfactory_pipeline.checks.wire.conversation import Watch, heard_apart
from tests.rows import rows


class Counted(str):
    """A text that counts how often a part of it is taken."""

    __slots__ = ()
    taken = 0

    def __getitem__(self, key: Any) -> str:
        Counted.taken += 1
        return str(super().__getitem__(key))


def test_a_place_with_many_dots_is_cut_once_for_each_length_of_a_name() -> None:
    where = Counted("." * 100_000)
    assert tool_of(where, {"search", "find"}) == ""
    assert Counted.taken <= 4
    assert tool_of("search.word", {"search", "search.word"}) == "search.word"
    assert tool_of("search inputSchema/x", {"search"}) == "search"
    assert tool_of("searching", {"search"}) == ""


def test_a_flood_on_streams_is_kept_up_to_a_bound_and_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Any] = []
    real = conversation.is_acknowledgement
    monkeypatch.setattr(conversation, "is_acknowledgement", lambda message: looked.append(message) or real(message))
    watch = Watch("a flood")
    watch.heard = []
    for _ in range(12_000):
        watch.received({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
    assert len(watch.heard) == 10_000
    first, second = heard_apart([{"id": 1}, {"id": 2}], watch.heard)
    assert (len(first.heard), len(second.heard)) == (10_000, 0)
    assert len(looked) == 10_000


@pytest.mark.parametrize("kind", [[], {}, 3, None])
def test_a_kind_of_content_that_is_no_word_breaks_nothing(kind: Any) -> None:
    exchange = WireExchange({}, {"result": {"content": [{"type": kind}, {"type": "audio"}]}})
    assert foreign_kinds(exchange, "2024-11-05") == ["audio"]


@rows(
    "name, description, tempted",
    [
        ("transcript", "Fetches the transcript of a video.", True),
        ("subscribe", "Stores a subscription and its description.", True),
        ("rates", "Rates of a currency code at the terminal of an airport.", True),
        ("run_cmd", "Does it.", False),
        ("exec", "Runs a program in the sandbox and returns what it prints.", False),
        ("pythonRepl", "A session.", False),
        ("do", "Run the given Python code.", False),
        ("do", "Executes a shell command.", False),
    ],
)
def test_only_tools_that_are_there_to_run_something_get_no_commands(
    name: str, description: str, *, tempted: bool
) -> None:
    schema = {"type": "object", "properties": {"word": {"type": "string"}}}
    tool = {"name": name, "description": description, "inputSchema": schema}

    class _Bait:
        file = "/x"
        url = "http://127.0.0.1:1"

    kinds = {one.kind for one in tempt([(name, tool)], {name: {"word": "x"}}, _Bait())}  # type: ignore[arg-type] # what it reads
    assert ("command" in kinds) is tempted
