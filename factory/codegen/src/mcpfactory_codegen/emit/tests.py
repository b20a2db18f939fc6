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
from pathlib import Path
from typing import Any

import pytest
from mcpfactory_runtime.testing import connect
from mcpfactory_runtime.upstream import StubUpstream

from PACKAGE.server import server

DATA: dict[str, Any] = json.loads(Path(__file__).with_name("cases.json").read_text("utf-8"))


@pytest.mark.parametrize("case", DATA["cases"], ids=lambda case: str(case["tool"]))
def test_a_call_becomes_the_documented_request(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in DATA["environment"]:
        monkeypatch.setenv(variable, "test-credential")
    result, stub = asyncio.run(_call(case, monkeypatch))
    assert stub.mismatches == []
    assert [request.method for request in stub.requests] == [case["request"]["method"]]
    assert not result.get("isError"), result
    _carries(result, case["response"])


async def _call(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Any], StubUpstream]:
    async with StubUpstream([case]) as stub:
        monkeypatch.setenv("MCPFACTORY_BASE_URL", stub.base_url)
        async with connect(server) as client:
            return await client.call_tool(case["tool"], case["arguments"]), stub


def _carries(result: dict[str, Any], response: dict[str, Any]) -> None:
    """The result has what the API answered: JSON as structured content, text as it is."""
    body, kind = response["body"], response["content_type"]
    if "json" in kind and body is not None:
        assert result["structuredContent"] == (body if isinstance(body, dict) else {"result": body})
    elif kind.startswith("text/"):
        assert body in [block.get("text") for block in result["content"]]
'''


def test_module(package: str) -> str:
    """tests/_generated/test_tools.py of the server with this import package."""
    return _TEST.replace("PACKAGE", package)
