"""Invalid but common documents, end to end: each becomes a server with sound tools whose calls arrive as written.

`expected.json` has the problems that are reported for each document with any: code, place and what was assumed. After a change,
remove it and run the tests: they write what is missing, and fail then. Read the difference.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from mcpfactory_codegen.servers.config import read_config
from mcpfactory_codegen.servers.create import create_server, regenerate
from mcpfactory_codegen.servers.generation import GeneratedServer
from mcpfactory_runtime.testing import connect
from mcpfactory_runtime.upstream.stub import RecordedRequest, StubUpstream
from tests.codegen.micro.cases import CASES, Micro
from tests.codegen.reading.support import METASCHEMA, references
from tests.subtest_table import parametrize_subtests

EXPECTED = Path(__file__).with_name("expected.json")
TOLD: dict[str, list[str]] = json.loads(EXPECTED.read_bytes()) if EXPECTED.exists() else {}
ANSWER = {"status": 200, "content_type": "application/json", "body": {"ok": True}}


PLAIN = {"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "paths": {"/plain": {"get": {"responses": {}}}}}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A server of a document that nothing is odd about, to be copied and given another; none of its names is published."""
    folder = tmp_path_factory.mktemp("micro")
    (folder / "openapi").write_text(json.dumps(PLAIN))
    server = create_server(folder, source=folder / "openapi", name="micro").path
    (server / ".mcpfactory/report.json").unlink()
    return server


@contextmanager
def importable(micro: Micro, made: Path, folder: Path) -> Iterator[tuple[GeneratedServer, pytest.MonkeyPatch]]:
    server = Path(shutil.copytree(made, folder / "micro"))
    (server / read_config(server).document).write_bytes(micro.raw)
    created = regenerate(server)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(created.path / "src"))
        try:
            yield created, patch
        finally:  # also after a failure, which must not affect the next document
            for name in [name for name in sys.modules if name.split(".")[0] == "micro_mcp"]:
                del sys.modules[name]


@parametrize_subtests("micro", CASES, name=lambda one: one.kind)
def test_a_document_that_is_not_quite_right_works_all_the_same(micro: Micro, made: Path, tmp_path: Path) -> None:
    with importable(micro, made, tmp_path) as (created, monkeypatch):
        _check(micro, created, monkeypatch)


def _check(micro: Micro, made: GeneratedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    report = json.loads((made.path / ".mcpfactory/report.json").read_bytes())
    listed, request = asyncio.run(_used(micro, report, monkeypatch))
    _sound(listed)
    assert len(listed) == made.tools == made.operations - len(made.skipped)
    if micro.needs is not None:
        assert set(_called(micro, report, listed)["inputSchema"].get("required", ())) == set(micro.needs)
    if request is not None:
        _as_written(micro, request)
    told = [f"{one.code} at {one.pointer or '/'} line {one.line}: {one.message}" for one in made.problems]
    if told and micro.kind not in TOLD:
        TOLD[micro.kind] = told
        EXPECTED.write_text(json.dumps(TOLD, indent=1, ensure_ascii=False, sort_keys=True) + "\n", "utf-8")
        pytest.fail(f"not recorded before: {told}")
    assert told == TOLD.get(micro.kind, [])


def _called(micro: Micro, report: dict[str, Any], listed: list[dict[str, Any]]) -> dict[str, Any]:
    rows = [
        row
        for row in report["tools"]
        if (not micro.tool or row["name"] == micro.tool)
        and (not micro.path or row["operation"]["path"] == micro.path)
        and row["operation"]["method"] == (micro.sent.split()[0] if micro.sent else "GET")
    ]
    assert rows, [row["name"] for row in report["tools"]]
    return next(tool for tool in listed if tool["name"] == rows[0]["name"])


async def _used(
    micro: Micro, report: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> tuple[list[dict[str, Any]], RecordedRequest | None]:
    """List the tools and make the one call."""
    server = importlib.import_module("micro_mcp.server").server
    api = importlib.import_module("micro_mcp._generated.api")
    assert ("https://api.test/v1" if micro.base is None else micro.base) == api.BASE_URL
    cases = [{"tool": "any", "request": {"method": method}, "response": ANSWER} for method in _METHODS]
    for variable, value in micro.environ.items():
        monkeypatch.setenv(variable, value)
    async with StubUpstream(cases) as stub, api.upstream(), connect(server) as client:
        monkeypatch.setenv("MCPFACTORY_BASE_URL", stub.base_url)
        listed = await client.list_tools()
        if micro.own:
            (own,) = (one for one in api.SERVERS if one.url == micro.own)
            assert f'server="{own.name}"' in "".join(path.read_text("utf-8") for path in _modules())
        if not micro.sent:
            return listed, None
        name = _called(micro, report, listed)["name"]
        row = next(row for row in report["tools"] if row["name"] == name)
        wires = {f"{bound['in']} {bound['name']}": argument for argument, bound in row["arguments"].items()}
        arguments = {**micro.arguments, **{wires[wire]: value for wire, value in micro.wire.items()}}
        result = await client.call_tool(name, arguments)
        assert not result.get("isError"), result
        (request,) = stub.requests
        return listed, request


_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "QUERY")


def _modules() -> Iterator[Path]:
    module = sys.modules["micro_mcp._generated.api"]
    return (Path(str(module.__file__)).parent / "tools").glob("*.py")


def _sound(listed: list[dict[str, Any]]) -> None:
    """What holds for every tool list: unique valid names, valid schemas that stand alone."""
    names = [tool["name"] for tool in listed]
    assert len(set(names)) == len(names)
    for tool in listed:
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", tool["name"])
        assert 0 < len(tool["description"]) <= 1024
        schema = tool["inputSchema"]
        assert [error.message for error in METASCHEMA.iter_errors(schema)] == []
        assert schema["type"] == "object"
        assert all(re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", argument) for argument in schema["properties"])
        assert set(schema.get("required", ())) <= set(schema["properties"])
        for reference in references(schema):
            name = reference.removeprefix("#/$defs/").replace("~1", "/").replace("~0", "~")
            assert name in schema["$defs"], reference
        jsonschema.Draft202012Validator(schema).is_valid({})


def _as_written(micro: Micro, request: RecordedRequest) -> None:
    assert f"{request.method} {request.path}" + (f"?{request.query}" if request.query else "") == micro.sent
    for name, value in micro.headers.items():
        assert request.header(name) == value
    if micro.json is not None:
        assert request.json() == micro.json
    if micro.body is not None:
        assert request.body.decode() == micro.body
    text = request.body.decode()
    assert [part for part in micro.contains if part not in text] == []
    assert bool(request.body) == (micro.json is not None or micro.body is not None or bool(micro.contains))
