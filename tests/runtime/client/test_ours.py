"""The client and the server of this package with each other, in every revision."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_runtime.client import Client
from mcpfactory_runtime.revisions import REVISIONS

pytestmark = pytest.mark.anyio

SERVER = [sys.executable, str(Path(__file__).with_name("our_server.py"))]


def accept(_params: dict[str, Any]) -> dict[str, Any]:
    return {"action": "accept", "content": {"name": "Ann"}}


@pytest.mark.parametrize("revision", list(REVISIONS))
async def test_our_server_and_client_understand_each_other(revision: str) -> None:
    async with Client.connect_stdio(SERVER, revision=revision, elicitation=accept) as client:
        assert client.revision.name == revision
        assert client.server_info["name"] == "ours"
        assert sorted(tool["name"] for tool in await client.list_tools()) == ["ask", "change", "count"]
        steps: list[dict[str, Any]] = []
        assert (await client.call_tool("count", progress=steps.append))["content"][0]["text"] == "2"
        assert [step["progress"] for step in steps] == [1, 2]
        if "elicitation" in client.revision.client_capabilities:
            assert (await client.call_tool("ask"))["content"][0]["text"] == "accept"


@pytest.mark.parametrize("module", ["mcpfactory_runtime.client", "mcpfactory_runtime.upstream"])
def test_neither_client_loads_an_http_library_before_it_is_used(module: str) -> None:
    code = f"import sys, {module}; print([name for name in ('httpx', 'httpcore', 'h11', 'pydantic') if name in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.strip() == "[]"
