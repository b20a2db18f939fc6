"""Workloads around generated servers: making one, starting one with many tools, calling an upstream through one."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.bench import http, stdio
from benchmarks.bench.messages import Pipe, call
from mcpfactory_codegen.servers.create import create_server

BARE = Path(__file__).resolve().parent / "peers/servers/bare.py"
OWN_TOOL = '''

@server.tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b
'''

LOAD_FASTMCP = """
import json, sys, asyncio, httpx2
from fastmcp import FastMCP
server = FastMCP.from_openapi(json.load(open(sys.argv[1])), client=httpx2.AsyncClient(base_url="http://127.0.0.1:9"))
print(len(asyncio.run(server.list_tools())))
"""


def document(operations: int) -> dict[str, Any]:
    """An API of so many operations, each with a path parameter, a query parameter and a body or a response of its own."""
    thing = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "size": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["name"],
    }
    paths = {
        f"/group{number // 20}/things{number}/{{id}}": {
            "get": {
                "operationId": f"getThing{number}",
                "summary": f"Get thing {number}",
                "tags": [f"group{number // 20}"],
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}},
                    {
                        "name": "view",
                        "in": "query",
                        "description": "How much to show",
                        "schema": {"enum": ["all", "some"]},
                    },
                ],
                "responses": {
                    "200": {
                        "description": "ok",
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}},
                    }
                },
            }
        }
        for number in range(operations)
    }
    info = {"title": "Things", "version": "1"}
    return {"openapi": "3.1.0", "info": info, "paths": paths, "components": {"schemas": {"Thing": thing}}}


def measure_generation(source: Path) -> tuple[float, float]:
    """Seconds and peak MiB of `mcpfactory new` for a document, as a process from cold to the written package."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "mcpfactory", "init", folder, "--factory", "index"],
            check=True,
            capture_output=True,
        )
        command = [sys.executable, "-m", "mcpfactory", "new", "--from-openapi", str(source), "--name", "bench"]
        return _cost(command, folder)


def peer_loading(python: str, source: Path) -> tuple[float, float]:
    """Seconds and peak MiB that FastMCP takes to load the same document and list its tools."""
    return _cost([python, "-W", "ignore", "-c", LOAD_FASTMCP, str(source)], None)


def _cost(command: Sequence[str], folder: str | None) -> tuple[float, float]:
    begin = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    spent = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command} ended with exit {process.returncode}")
    return spent, used.ru_maxrss / 1024


def _server(folder: Path, operations: int) -> list[str]:
    """The command of a server with so many generated tools and the tool `add` of its own."""
    (folder / "api.json").write_text(json.dumps(document(operations)))
    made = create_server(folder / "servers", name="bench", source=folder / "api.json")
    own = made.path / "src/bench_mcp/server.py"
    own.write_text(own.read_text().replace("\n\ndef main()", OWN_TOOL + "\n\ndef main()"))
    return ["env", f"PYTHONPATH={made.path / 'src'}", sys.executable, "-m", "bench_mcp"]


def startups_with_tools(operations: int, times: int = 4) -> list[float]:
    """Milliseconds from spawn to the first answer of `add`, in a server that has so many generated tools beside it."""
    with tempfile.TemporaryDirectory() as folder:
        command = _server(Path(folder), operations)
        stdio.startup(command)  # compiles the modules, as an installer does
        return [stdio.startup(command) for _ in range(times)]


def upstream_calls(calls: int = 4000, width: int = 32) -> tuple[float, int]:
    """Calls a second of a generated tool that asks an API over HTTP, `width` in flight, and the connections it opened."""
    with tempfile.TemporaryDirectory() as folder, http.serving([sys.executable, str(BARE)]) as served:
        command = _server(Path(folder), 1)
        pipe = Pipe(["env", f"MCPFACTORY_BASE_URL={served.url.removesuffix('/mcp')}", *command])
        try:
            pipe.handshake()
            lines = [
                json.dumps(call(n, "get_thing0", {"id": n, "view": "all"})).encode() + b"\n"
                for n in range(1, calls + 1)
            ]
            rate = stdio.flood(pipe, lines, width)
        finally:
            pipe.close()
        with urllib.request.urlopen(f"{served.url.removesuffix('/mcp')}/connections") as answer:
            return rate, int(answer.read())


def upstream_floor(floor: Sequence[str], calls: int = 4000, width: int = 32) -> float:
    """Requests a second of a bare pooled HTTP client of the same library against the same upstream."""
    import httpx  # noqa: PLC0415 - the floor of this workload only

    async def run(url: str) -> float:
        async with httpx.AsyncClient(
            base_url=url, trust_env=False, limits=httpx.Limits(max_connections=width)
        ) as client:
            numbers = iter(range(calls))

            async def worker() -> None:
                for number in numbers:
                    answer = await client.get(f"/group0/things0/{number}", params={"view": "all"})
                    answer.json()

            await client.get("/group0/things0/0")
            begin = time.perf_counter()
            await asyncio.gather(*(worker() for _ in range(width)))
            return calls / (time.perf_counter() - begin)

    with http.serving(floor) as served:
        return asyncio.run(run(served.url.removesuffix("/mcp")))
