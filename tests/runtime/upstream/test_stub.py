from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from mcpfactory_runtime.upstream import StubUpstream

CASES: list[dict[str, Any]] = [
    {"request": {"method": "GET", "path": "/books"}, "response": {"body": "all"}},
    {
        "request": {"method": "GET", "path": "/books", "query": [["tag", "a"], ["tag", "b"]]},
        "response": {"body": "both"},
    },
    {"request": {"method": "GET", "path": "/books/a b"}, "response": {"body": "one"}},
    {
        "request": {"method": "POST", "path": "/books", "json": {"n": 1}, "headers": {"X-K": "v"}},
        "response": {"status": 201, "content_type": "", "body": None},
    },
    {"request": {"method": "PUT"}, "response": {"content_type": "text/plain", "body": "anywhere"}},
    {"request": {"method": "HEAD", "path": "/books"}, "response": {"body": "unseen"}},
]


def ask(stub: StubUpstream, method: str, target: str, **more: Any) -> httpx.Response:
    return httpx.request(method, stub.base_url + target, trust_env=False, **more)


def test_an_api_in_a_folder_is_called_there_and_nowhere_else() -> None:
    with StubUpstream(CASES, base_path="/v1") as stub:
        assert stub.base_url.endswith("/v1")
        assert ask(stub, "GET", "/books").json() == "all"
        assert stub.requests[0].path == "/books"
        host = stub.base_url.removesuffix("/v1")
        for elsewhere in ("/books", "/v1books", "/v2/books"):
            assert httpx.get(host + elsewhere, trust_env=False).status_code == 404
        assert stub.mismatches == [
            f"GET {elsewhere} is not below /v1" for elsewhere in ("/books", "/v1books", "/v2/books")
        ]


def test_a_request_that_differs_from_its_case_is_refused_and_noted() -> None:
    with StubUpstream(CASES) as stub:
        assert ask(stub, "POST", "/books", json={"n": 1}, headers={"X-K": "v"}).status_code == 201
        assert ask(stub, "POST", "/books", json={"n": 2}, headers={"X-K": "v"}).status_code == 400
        assert ask(stub, "POST", "/books", content=b"{").status_code == 400
        assert stub.mismatches == [
            'POST /books: body is {"n": 2}, not {"n": 1}',
            "POST /books: header X-K is missing, not 'v'; body is not JSON",
        ]


def test_a_request_without_credentials_is_not_let_in() -> None:
    key = {"kind": "apiKey", "in": "header", "name": "X-Key", "variables": ["KEY"]}
    case = {"request": {"method": "GET", "path": "/", "credentials": [key]}, "response": {"body": 1}}
    with StubUpstream([case], environ={"KEY": "k"}) as stub:
        assert ask(stub, "GET", "/").status_code == 401
        assert ask(stub, "GET", "/", headers={"X-Key": "k"}).status_code == 200
        assert stub.mismatches == ["GET /: header X-Key is missing: the operation requires credentials"]


@pytest.mark.anyio
async def test_it_runs_from_the_shell_and_prints_its_address(tmp_path: Path) -> None:
    file = tmp_path / "cases.json"
    file.write_text(json.dumps({"cases": CASES}), "utf-8")
    command = [sys.executable, "-m", "mcpfactory_runtime.upstream.stub", str(file)]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        url = (await process.stdout.readline()).decode().strip()
        async with httpx.AsyncClient(trust_env=False) as client:
            assert (await client.get(f"{url}/books")).json() == "all"
    finally:
        process.terminate()
        await process.communicate()
