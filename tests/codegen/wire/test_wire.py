"""Requests arrive as the document says: from a document over a generated server and a real connection, case by case."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from mcpfactory_codegen.servers.create import create_server
from mcpfactory_runtime.testing import connect
from mcpfactory_runtime.upstream.stub import RecordedRequest, StubUpstream
from tests.codegen.wire.cases import CASES, Case, document

pytestmark = pytest.mark.xdist_group("wire")

ANSWER = {"status": 200, "content_type": "application/json", "body": {"ok": True}}
METHODS = sorted({case.method.upper() for case in CASES})
VERSIONS = sorted({case.version for case in CASES})


@pytest.fixture(scope="module")
def arrived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, RecordedRequest]]:
    """The request of every case, by its title; each version of OpenAPI is one document and one server."""
    with pytest.MonkeyPatch.context() as patch:
        found: dict[str, RecordedRequest] = {}
        for version in VERSIONS:
            folder = tmp_path_factory.mktemp("wire")
            (folder / "api.json").write_text(json.dumps(document(version)))
            made = create_server(folder, source=folder / "api.json", name=f"wire{version[0]}{version[2]}")
            assert made.skipped == ()
            patch.syspath_prepend(str(made.path / "src"))
            report = json.loads((made.path / ".mcpfactory/report.json").read_bytes())
            found |= asyncio.run(_call(f"{made.path.name}_mcp", version, report, patch))
        yield found
    for name in [name for name in sys.modules if name.startswith("wire") and name.split(".")[0].endswith("_mcp")]:
        del sys.modules[name]


async def _call(package: str, version: str, report: Any, patch: pytest.MonkeyPatch) -> dict[str, RecordedRequest]:
    server = importlib.import_module(f"{package}.server").server
    api = importlib.import_module(f"{package}._generated.api")
    rows = {(row["operation"]["method"], row["operation"]["path"]): row for row in report["tools"]}
    found = {}
    answers = [{"tool": "any", "request": {"method": method}, "response": ANSWER} for method in METHODS]
    async with StubUpstream(answers) as stub, api.upstream(), connect(server) as client:
        patch.setenv("MCPFACTORY_BASE_URL", stub.base_url)
        for case in (case for case in CASES if case.version == version):
            row = rows[case.method.upper(), case.where]
            names = {f"{bound['in']} {bound['name']}".strip(): name for name, bound in row["arguments"].items()}
            assert case.values.keys() <= names.keys(), (case.title, names)
            result = await client.call_tool(row["name"], {names[key]: value for key, value in case.values.items()})
            assert not result.get("isError"), (case.title, result)
            found[case.title] = stub.requests[-1]
        assert len(stub.requests) == len(found)
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_the_request_of_a_call_is_as_the_document_says(case: Case, arrived: dict[str, RecordedRequest]) -> None:
    request = arrived[case.title]
    assert (request.method, request.path, request.query) == (case.method.upper(), case.sent or case.where, case.query)
    assert {name: request.header(name) for name in case.headers} == case.headers
    text = request.body.decode()
    if case.json is not None:
        assert request.json() == case.json
    elif case.body is not None:
        assert text == case.body
    else:
        assert bool(text) == bool(case.contains)
    at = 0
    for part in case.contains:
        at = text.index(part, at) + len(part)
