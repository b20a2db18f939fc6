from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mcpfactory_runtime.testing import connect

from prose_mcp.measures import measure
from prose_mcp.server import server


def test_words_and_sentences_are_counted() -> None:
    measures = measure("Tea is ready. Who wants a cup? Don't wait!")
    assert (measures.words, measures.sentences) == (9, 3)
    assert measures.longest_sentence == "Who wants a cup"


def test_the_tool_answers_with_figures() -> None:
    result = _call("measure_text", {"text": "Two words. Three more words."})
    assert result["structuredContent"]["words"] == 5


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_text_is_an_error_that_a_model_can_read(text: str) -> None:
    result = _call("measure_text", {"text": text})
    assert result["isError"]


def test_a_shorter_text_with_shorter_sentences_is_seen_as_such() -> None:
    before = "It is the case that the tea is ready now. Come."
    result = _call("compare_texts", {"before": before, "after": "The tea is ready. Come."})
    assert result["structuredContent"]["words"] == -6
    assert result["structuredContent"]["shorter_sentences"]


def test_an_edit_that_left_nothing_is_an_error() -> None:
    assert _call("compare_texts", {"before": "Tea.", "after": " "})["isError"]


def _call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    async def call() -> dict[str, Any]:
        async with connect(server) as client:
            return await client.call_tool(name, arguments)

    return asyncio.run(call())
