"""A generated server, and calls of its tools against a stub of its API."""

from __future__ import annotations

import asyncio
import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_codegen.servers.create import create_server
from mcpfactory_runtime.testing import connect
from mcpfactory_runtime.upstream import StubUpstream
from tests.codegen.execution.documents import written

BOOK = {"title": "Orlando", "limit": 7}
CASES = [
    {
        "tool": "list_books",
        "request": {"method": "GET", "path": "/books"},
        "response": {"status": 200, "content_type": "application/json", "body": [BOOK]},
    },
    {
        "tool": "get_book",
        "request": {"method": "GET", "path": "/books/7"},
        "response": {"status": 200, "content_type": "application/json", "body": BOOK},
    },
]


@pytest.fixture
def server(tmp_path: Path) -> Path:
    return create_server(tmp_path, source=written(tmp_path), name="bookshop").path


@pytest.fixture
def use(server: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Call tools of the server; return the results and the targets of the received requests."""

    def run(*calls: tuple[str, dict[str, Any]], cases: Any = CASES) -> tuple[list[dict[str, Any]], list[str], Any]:
        monkeypatch.syspath_prepend(str(server / "src"))
        monkeypatch.setenv("MCPF_BOOKSHOP_API_KEY", "key")

        async def made() -> tuple[list[dict[str, Any]], list[str], Any]:
            module = importlib.import_module("bookshop_mcp.server")
            api = importlib.import_module("bookshop_mcp._generated.api")
            async with StubUpstream(cases) as stub, api.upstream():
                monkeypatch.setenv("MCPFACTORY_BASE_URL", stub.base_url)
                async with connect(module.server) as client:
                    results = [await client.call_tool(name, arguments) for name, arguments in calls]
                return results, [f"{one.path}?{one.query}" for one in stub.requests], module.server

        try:
            return asyncio.run(made())
        finally:
            for name in [name for name in sys.modules if name.split(".")[0] == "bookshop_mcp"]:
                del sys.modules[name]

    return run
