"""The example servers of docs/examples, as processes over HTTP, with the official client in both lifecycles."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any, Literal

import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.timeouts import TIMEOUT, wait_until

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("mode", ["auto", "legacy"])

DOCS = Path(__file__).resolve().parents[2] / "docs"
EXAMPLES = DOCS / "examples/servers"
KEYS = {"key-of-ada": ("Ada", "books:write"), "key-of-ben": ("Ben", "")}


@contextmanager
def serving(name: str, *arguments: str, log: Path, **environ: str) -> Iterator[str]:
    """Run an example; yield where it listens. It ends by SIGTERM, with exit code 0."""
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    with log.open("wb") as stderr, subprocess.Popen(command, stderr=stderr, env={**os.environ, **environ}) as process:
        told = lambda: re.search(r"http://[\d.:]+", log.read_text("utf-8"))  # noqa: E731
        wait_until(lambda: told() or process.poll() is not None, lambda: log.read_text("utf-8"))
        found = told()
        assert found is not None, log.read_text("utf-8")
        try:
            yield found[0]
        finally:
            process.send_signal(signal.SIGTERM)
            ended = process.wait(TIMEOUT)
        assert ended in (0, -signal.SIGTERM), log.read_text("utf-8")
        assert "Traceback" not in log.read_text("utf-8")


@asynccontextmanager
async def official(url: str, mode: Literal["auto", "legacy"], key: str = "") -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


async def fetch(url: str, method: str = "GET") -> tuple[int, str]:
    async with httpx2.AsyncClient(timeout=TIMEOUT) as http:
        answer = await http.request(method, url)
    return answer.status_code, answer.text


async def said(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    assert result.structured_content is not None
    return result.structured_content


@both
async def test_the_converter(tmp_path: Path, mode: Literal["auto", "legacy"]) -> None:
    with serving("converter.py", "--http", "--port", "0", log=tmp_path / "log") as url:
        async with official(url, mode) as client:
            found = await said(client, "convert_temperature", value=212, unit="fahrenheit")
            assert found == pytest.approx({"celsius": 100, "fahrenheit": 212, "kelvin": 373.15})
            assert await said(client, "convert_length", value=1, unit="mile", to="metre") == {"result": 1609.344}
            refused = await client.call_tool("convert_temperature", {"value": -1, "unit": "kelvin"})
            assert refused.is_error
            assert "below absolute zero" in str(refused.content)
            text: Any = (await client.read_resource("units://length")).contents[0]
            assert text.text == "metre, foot, mile"


@both
async def test_the_library(tmp_path: Path, mode: Literal["auto", "legacy"]) -> None:
    database = tmp_path / "loans.db"
    with serving("loans.py", "--port", "0", log=tmp_path / "log", LOANS_DB=str(database)) as url:
        assert (await fetch(f"{url}/mcp", "POST"))[0] == 401
        with closing(sqlite3.connect(database)) as keys, keys:
            hashed = [(hashlib.sha256(key.encode()).hexdigest(), *who) for key, who in KEYS.items()]
            keys.executemany("INSERT INTO keys VALUES (?, ?, ?)", hashed)
        async with official(url, mode, "key-of-ada") as client:
            assert await said(client, "add_book", title=" Emma ") == {"result": "Emma"}
            assert await said(client, "borrow_book", title="Emma") == {"result": "Ada has Emma"}
        async with official(url, mode, "key-of-ben") as client:
            assert (await said(client, "list_books"))["result"] == [{"title": "Emma", "lent_to": "Ada"}]
            taken = await client.call_tool("borrow_book", {"title": "Emma"})
            assert "is not here to be lent" in str(taken.content)
        assert (await fetch(f"{url}/ready"))[0] == 200
    lines = [json.loads(line) for line in (tmp_path / "log").read_text("utf-8").splitlines() if line.startswith("{")]
    assert [line["tool"] for line in lines if "tool" in line] == [
        "add_book",
        "borrow_book",
        "list_books",
        "borrow_book",
    ]


@both
async def test_the_shop(tmp_path: Path, mode: Literal["auto", "legacy"]) -> None:
    with serving("shop.py", "0", log=tmp_path / "log") as url:
        async with official(url, mode) as client:
            assert await said(client, "sell", item="tea", number=2) == {"result": 10}
            assert await said(client, "count", item="tea") == {"result": 10}
        assert await fetch(f"{url}/stock/tea") == (200, '{"tea":10}')
