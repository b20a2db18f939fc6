"""Fixtures: a mock API for all tests, and a client of the server that uses it."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from mcpfactory_runtime.testing import connect

Json = dict[str, Any]


def _loaded() -> ModuleType:
    """Load upstream.py under a name that is unique among all servers' tests."""
    spec = importlib.util.spec_from_file_location("meta_ads_upstream", Path(__file__).with_name("upstream.py"))
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


model = _loaded()


class Bench:
    """Helper that calls tools, and gives access to the requests that the mock API received."""

    def __init__(self, meta: Any, runner: asyncio.Runner) -> None:
        self.meta = meta
        self._runner = runner
        self.asked: list[str] = []
        self.progress: list[Any] = []

    def result(self, tool: str, *, agree: bool | str | None = None, revision: str = "", **arguments: Any) -> Json:
        """Call a tool. `agree` is the user's answer ("unticked": the unchanged form, "text": a string instead of a boolean), None without elicitation."""
        from meta_ads_mcp.server import server

        async def answered(params: Json) -> Json:
            self.asked.append(params["message"])
            go_ahead = "yes" if agree == "text" else agree is True
            return {"action": "accept", "content": {"go_ahead": go_ahead}} if agree else {"action": "decline"}

        async def call() -> Json:
            options: Json = {} if agree is None else {"elicitation": answered}
            async with connect(server, revision, **options) as client:
                found: Json = await client.call_tool(tool, arguments, progress=self.progress.append)
                return found

        return self._runner.run(call())

    def done(self, tool: str, **arguments: Any) -> Json:
        """Call a tool that must succeed, and return its structured content."""
        result = self.result(tool, **arguments)
        assert not result.get("isError"), result["content"]
        found: Json = result["structuredContent"]
        return found

    def refused(self, tool: str, **arguments: Any) -> str:
        """Call a tool that must fail, and return its error message."""
        result = self.result(tool, **arguments)
        assert result.get("isError"), result
        return str(result["content"][0]["text"])

    def writes(self) -> list[Any]:
        """Return the requests with other methods than GET."""
        return [one for one in self.meta.seen if one.method != "GET"]


@pytest.fixture(scope="session")
def api() -> Iterator[Any]:
    with model.Upstream() as upstream:
        yield upstream


@pytest.fixture(scope="session")
def runner() -> Iterator[asyncio.Runner]:
    """Provide one event loop for all tests, because connections are bound to a loop."""
    from meta_ads_mcp import graph

    with asyncio.Runner() as one:
        yield one
        for way in (graph.connection, graph._reader):
            one.run(way().aclose())


@pytest.fixture
def bench(api: Any, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    from meta_ads_mcp import accounts, budgets, graph, server

    api.meta.reset()
    for name, value in api.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(graph, "USAGE", graph.Usage())
    monkeypatch.setattr(accounts, "_CURRENCIES", {})
    monkeypatch.setattr(budgets, "_FIRST", {}, raising=False)
    server.server.offer(mode="full", profile="full")
    yield Bench(api.meta, runner)


@pytest.fixture
def ids() -> ModuleType:
    return model
