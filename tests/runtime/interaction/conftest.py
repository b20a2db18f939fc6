"""One client fixture for every transport and revision, so that each test covers all of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_runtime.client import Client
from mcpfactory_runtime.revisions import R2024_11_05, R2025_03_26, R2025_06_18, REVISIONS, Revision
from mcpfactory_runtime.testing import connect as connect_memory
from tests.runtime.interaction import sample
from tests.timeouts import TIMEOUT, wait_until

Connect = Callable[..., AbstractAsyncContextManager[Client]]
SAMPLE = [sys.executable, str(Path(sample.__file__))]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep HTTP+SSE for the first revision only; skip two middle revisions over pipes, to save 60 processes."""
    left_out = {"sse": set(REVISIONS.values()) - {R2024_11_05}, "stdio": {R2025_03_26, R2025_06_18}}
    items[:] = [item for item in items if _revision(item) not in left_out.get(_given(item).get("connect", ""), ())]


def _given(item: pytest.Item) -> dict[str, Any]:
    return item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}


def _revision(item: pytest.Item) -> Revision | None:
    return _given(item).get("revision")


@pytest.fixture(scope="session")
def sample_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start the sample server as a process over HTTP; return its URL."""
    log = tmp_path_factory.mktemp("http") / "stderr"
    with log.open("wb") as stderr, subprocess.Popen([*SAMPLE, "--http", "--port", "0"], stderr=stderr) as process:
        wait_until(
            lambda: "http://" in log.read_text("utf-8") or process.poll() is not None, lambda: log.read_text("utf-8")
        )
        told = log.read_text("utf-8")
        assert process.poll() is None, told
        yield told.split()[-1]
        process.terminate()
        assert process.wait(TIMEOUT) == 0


@pytest.fixture(params=REVISIONS.values(), ids=str)
def revision(request: pytest.FixtureRequest) -> Revision:
    found: Revision = request.param
    return found


@pytest.fixture(params=["memory", "stdio", "http", "sse"])
def connect(request: pytest.FixtureRequest, revision: Revision) -> Connect:
    """Return a function that opens a client of the sample server with `revision` over one transport."""
    transport = request.param
    url = request.getfixturevalue("sample_url") if transport in ("http", "sse") else ""
    if transport == "sse":
        url = f"{url.removesuffix('/mcp')}/sse"

    @asynccontextmanager
    async def opened(**options: Any) -> AsyncIterator[Client]:
        options.setdefault("revision", revision.name)
        if transport == "memory":
            async with connect_memory(sample.server, **options) as client:
                yield client
        elif transport == "stdio":
            async with Client.connect_stdio(SAMPLE, **options) as client:
                yield client
        else:
            async with Client.connect_http(url, **options) as client:
                yield client

    return opened
