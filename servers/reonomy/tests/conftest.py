"""Fixtures that run the server as a separate process, with a mock API as upstream."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from mcpfactory_runtime.client import Client, connect_stdio

sys.path.insert(0, str(Path(__file__).parent))

from upstream import Model, application, environment

Work = Callable[[Client, Model], Awaitable[Any]]


@asynccontextmanager
async def _served(model: Model) -> AsyncIterator[str]:
    api = uvicorn.Server(uvicorn.Config(application(model), port=0, log_level="warning"))
    serving = asyncio.create_task(api.serve())
    while not api.started:
        await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{api.servers[0].sockets[0].getsockname()[1]}"
    finally:
        api.should_exit = True
        await serving


@pytest.fixture(scope="session")
def with_server() -> Callable[..., Any]:
    """Return a runner for functions of a client and the mock API. Options are passed to the client."""

    def run(work: Work, extra: dict[str, str] | None = None, **options: Any) -> Any:
        async def whole() -> Any:
            model = Model()
            async with _served(model) as url:
                path = os.pathsep.join([str(Path(__file__).parents[1] / "src"), os.environ.get("PYTHONPATH", "")])
                environ = {**environment(url), **(extra or {}), "PYTHONPATH": path}
                command = [sys.executable, "-m", "reonomy_mcp"]
                async with connect_stdio(command, env=environ, timeout=60, **options) as client:
                    try:
                        return await work(client, model)
                    finally:
                        model.released.set()

        return asyncio.run(whole())

    return run
