"""The tests that a generated server brings along: every tool called once against a stub of its API."""

from __future__ import annotations

__all__ = ["TEST_INIT", "test_module"]

TEST_INIT = '"""Tests that mcpfactory made from the API document; rewritten whole."""\n'

_TEST = '''"""Every tool, called once with sample values: the request that the API sees, and the answer that comes back.

Made by mcpfactory and rewritten whole. The cases in cases.json follow from the API document alone, not from the code
that is tested here.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcpfactory_runtime.testing import connect
from mcpfactory_runtime.upstream import StubUpstream

from PACKAGE._generated.api import upstream
from PACKAGE.server import server

DATA: dict[str, Any] = json.loads(Path(__file__).with_name("cases.json").read_text("utf-8"))
CASES: list[dict[str, Any]] = DATA["cases"]


@dataclass(frozen=True)
class Outcome:
    """What came of one call: the result, the methods of the requests it caused, and what was wrong with them."""

    result: dict[str, Any]
    methods: list[str]
    mismatches: list[str]


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    """Every case, called one after the other over one connection."""
    before = server.offer(mode="full", profile="full")  # whatever clients are offered
    with pytest.MonkeyPatch.context() as patch:
        for variable in DATA["environment"]:
            patch.setenv(variable, "test-credential")
        called = asyncio.run(_call_all(patch))
    server.offer(*before)
    return called


async def _call_all(patch: pytest.MonkeyPatch) -> dict[str, Outcome]:
    called: dict[str, Outcome] = {}
    async with StubUpstream(CASES) as stub, upstream():
        patch.setenv("MCPFACTORY_BASE_URL", stub.base_url)
        async with connect(server) as client:
            for case in CASES:
                before = len(stub.requests), len(stub.mismatches)
                result = await client.call_tool(case["tool"], case["arguments"])
                methods = [request.method for request in stub.requests[before[0] :]]
                called[case["tool"]] = Outcome(result, methods, stub.mismatches[before[1] :])
    return called


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["tool"]))
def test_a_call_becomes_the_documented_request(case: dict[str, Any], outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes[case["tool"]]
    assert outcome.mismatches == []
    assert not outcome.result.get("isError"), outcome.result
    assert outcome.methods == [case["request"]["method"]]
    _carries(outcome.result, case["response"])


def _carries(result: dict[str, Any], response: dict[str, Any]) -> None:
    """The result has what the API answered; its structured content is held against the output schema by the runtime."""
    body, kind = response["body"], response["content_type"]
    if "json" in kind and body is not None:
        assert json.loads(result["content"][0]["text"]) == body
    elif kind.startswith("text/"):
        assert body in [block.get("text") for block in result["content"]]
'''


def test_module(package: str) -> str:
    """tests/_generated/test_tools.py of the server with this import package."""
    return _TEST.replace("PACKAGE", package)
