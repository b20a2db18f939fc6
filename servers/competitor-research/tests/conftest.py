from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import upstream
from mcpfactory_runtime.testing import connect

from competitor_research_mcp.server import server


@pytest.fixture
def acme() -> Iterator[upstream.Site]:
    with upstream.served(upstream.acme()) as site:
        yield site


@pytest.fixture
def globex() -> Iterator[upstream.Site]:
    with upstream.served(upstream.globex()) as site:
        yield site


class Tools:
    """Helper that calls tools through a client: each list of calls in one session, on one database."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, *sites: upstream.Site) -> None:
        self.environment = upstream.environment(folder / "research.sqlite", *sites)
        for name, value in self.environment.items():
            monkeypatch.setenv(name, value)

    def calls(self, *calls: tuple[str, dict[str, Any]], **options: Any) -> list[dict[str, Any]]:
        async def run() -> list[dict[str, Any]]:
            async with connect(server, **options) as client:
                return [await client.call_tool(name, arguments) for name, arguments in calls]

        return asyncio.run(run())

    def __call__(self, name: str, /, **arguments: Any) -> Any:
        result = self.calls((name, arguments))[0]
        assert not result.get("isError"), result["content"][0]["text"]
        found = result["structuredContent"]
        return found["result"] if set(found) == {"result"} else found

    def error(self, name: str, /, **arguments: Any) -> str:
        result = self.calls((name, arguments))[0]
        assert result.get("isError"), result
        text: str = result["content"][0]["text"]
        return text


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, acme: upstream.Site, globex: upstream.Site) -> Tools:
    return Tools(monkeypatch, tmp_path, acme, globex)
