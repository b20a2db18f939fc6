"""A generated server, run: it starts, lists, calls its API, and its own tests find what is wrong with it."""

from __future__ import annotations

import ast
import asyncio
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_codegen.servers.create import create_server, regenerate
from mcpfactory_codegen.servers.scaffold import runtime_range
from mcpfactory_runtime.client import connect_stdio
from mcpfactory_runtime.upstream import StubUpstream
from tests.codegen.emit.test_emit import HOSTILE
from tests.codegen.execution.documents import WORKFLOW, document, written
from tests.codegen.server_checks import assert_passes, run
from tests.subtest_table import parametrize_subtests

ROOT = Path(__file__).parents[3]


async def call(folder: Path, package: str, tool: str, arguments: dict[str, Any]) -> tuple[dict[str, Any], StubUpstream]:
    """Call one tool over stdio, against a stub that answers every case of the server."""
    cases = json.loads((folder / "tests/_generated/cases.json").read_bytes())["cases"]
    async with StubUpstream(cases) as stub:
        environ = {
            "PYTHONPATH": str(folder / "src"),
            "MCPFACTORY_BASE_URL": stub.base_url,
            "MCPF_BOOKSHOP_API_KEY": "secret-key",
        }
        async with connect_stdio([sys.executable, "-m", package], env=environ) as client:
            return await client.call_tool(tool, arguments), stub


@pytest.fixture(scope="module")
def bookshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bookshop")
    server = create_server(folder, source=written(folder)).path
    config = server / "mcpfactory.toml"
    config.write_text(config.read_text("utf-8") + WORKFLOW, "utf-8")
    assert regenerate(server).problems == ()
    return server


def test_a_call_reaches_the_api_with_its_credential(bookshop: Path) -> None:
    result, stub = asyncio.run(
        call(bookshop, "bookshop_mcp", "list_books", {"limit": 1, "author": ["value", "value1"]})
    )
    assert not result.get("isError"), result
    assert result["structuredContent"] == {"result": [{"title": "value", "limit": 1}]}
    (request,) = stub.requests
    pairs = [("limit", "1"), ("author", "value"), ("author", "value1")]
    assert (request.method, request.path, request.pairs) == ("GET", "/books", pairs)
    assert request.header("X-Api-Key") == "secret-key"


def test_arguments_that_the_schema_forbids_are_refused_before_the_api_is_asked(bookshop: Path) -> None:
    result, stub = asyncio.run(call(bookshop, "bookshop_mcp", "list_books", {"limit": 51}))
    assert result["isError"]
    assert "limit" in result["content"][0]["text"]
    assert stub.requests == []


def test_a_generated_server_passes_its_own_tests_the_type_checker_and_the_linter(bookshop: Path) -> None:
    assert_passes(bookshop)


def test_tests_of_a_server_accept_an_empty_text_as_a_response(tmp_path: Path) -> None:
    answer = {"200": {"description": "Done.", "content": {"text/plain": {"schema": {"type": "string", "example": ""}}}}}
    source = tmp_path / "openapi.json"
    paths = {"/done": {"post": {"operationId": "isDone", "responses": answer}}}
    source.write_text(json.dumps({"openapi": "3.0.3", "info": {"title": "Done", "version": "1"}, "paths": paths}))
    ran = run(create_server(tmp_path, source=source).path, "pytest", "-q", "-p", "no:cacheprovider")
    assert ran.returncode == 0, ran.stdout


@parametrize_subtests(
    "there, instead",
    [
        ('Parameter("limit", "query", "limit")', 'Parameter("limit", "query", "limits")'),
        ('Field("body_limit", ("limit",))', 'Field("body_limit", ("price",))'),
        ('"/books/{bookId}"', '"/book/{bookId}"'),
    ],
)
def test_its_tests_notice_a_wrong_binding(tmp_path: Path, there: str, instead: str) -> None:
    server = create_server(tmp_path, source=written(tmp_path)).path
    modules = (server / "src/bookshop_mcp/_generated/tools").glob("*.py")
    (module,) = (one for one in modules if there in one.read_text())
    module.write_text(module.read_text().replace(there, instead))
    ran = run(server, "pytest", "-q", "-p", "no:cacheprovider", "tests/_generated")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "failed" in ran.stdout


def test_listing_tools_loads_no_generated_module_and_no_http_library(bookshop: Path) -> None:
    program = (
        "import sys, bookshop_mcp.server\n"
        "print([name for name in sys.modules if '_generated' in name or name.partition('.')[0] in ('httpx', 'h11')])"
    )
    environ = {"PYTHONPATH": str(bookshop / "src")}
    ran = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def _poisoned(value: Any, texts: Iterator[str], key: str = "") -> Any:
    """Every free text of a document replaced by the next of `texts`."""
    if isinstance(value, dict):
        return {name: _poisoned(item, texts, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_poisoned(item, texts, key) for item in value]
    free = isinstance(value, str) and key in {"title", "description", "summary", "operationId", "tags"}
    return next(texts) if free else value


@pytest.mark.parametrize("first", [0, 5, 9])
def test_nothing_of_a_hostile_document_runs(tmp_path: Path, first: int) -> None:
    hostile = [text for text in HOSTILE if "\ud800" not in text]  # which no JSON file can hold
    texts = cycle(hostile[first:] + hostile[:first])
    data = _poisoned(document(), texts)
    for text in (next(texts), next(texts)):
        data["components"]["schemas"]["Book"]["properties"][text] = {"type": "string", "default": text, "enum": [text]}
        data["components"]["securitySchemes"][text] = {"type": "apiKey", "in": "header", "name": "X-Other"}
        data["security"].append({text: []})
        data["paths"]["/books"]["get"]["parameters"].append({"name": text, "in": "query", "schema": {"type": "string"}})
    server = create_server(tmp_path, name="bookshop", source=written(tmp_path, data)).path
    _is_data_everywhere(server)
    ran = run(server, "pytest", "-q", "-p", "no:cacheprovider", "-W", "error")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    before = (server / "src/bookshop_mcp/_generated/manifest.json").read_bytes()
    regenerate(server)
    assert (server / "src/bookshop_mcp/_generated/manifest.json").read_bytes() == before


def _is_data_everywhere(server: Path) -> None:
    project = tomllib.loads((server / "pyproject.toml").read_text("utf-8"))
    assert set(project) == {"build-system", "project", "tool"}
    assert project["project"]["dependencies"] == [f"mcpfactory-runtime[upstream]{runtime_range()}"]
    assert "49" not in (server / "README.md").read_text("utf-8").partition("## Run it")[0]
    own = ast.parse((server / "src/bookshop_mcp/server.py").read_text("utf-8"))
    calls = {ast.unparse(node.func) for node in ast.walk(own) if isinstance(node, ast.Call)}
    assert calls == {"Server", "server.mount_manifest", "Path", "server.run"}
    imported = {node.module for node in ast.walk(own) if isinstance(node, ast.ImportFrom)}
    assert imported == {"__future__", "pathlib", "mcpfactory_runtime", None}
