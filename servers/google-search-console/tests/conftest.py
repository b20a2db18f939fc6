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

from upstream import TOKEN, Model, application

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
    """Return a runner for functions of a client and the mock API. `token` is the bearer token of the server."""

    def run(work: Work, token: str = TOKEN) -> Any:
        async def whole() -> Any:
            model = Model()
            name = "GOOGLE_SEARCH_CONSOLE"
            async with _served(model) as url:
                environ = {f"{name}_BASE_URL": url, f"{name}_TOKEN": token, f"{name}_ALLOW_PRIVATE": "1"}
                path = os.pathsep.join([str(Path(__file__).parents[1] / "src"), os.environ.get("PYTHONPATH", "")])
                command = [sys.executable, "-m", "google_search_console_mcp"]
                async with connect_stdio(command, env={**environ, "PYTHONPATH": path}, timeout=60) as client:
                    return await work(client, model)

        return asyncio.run(whole())

    return run
