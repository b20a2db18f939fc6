"""The default lists of the servers and templates of this repository, and what vendors refuse in them."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.codebase.servers import server_names
from mcpfactory_codegen.servers.create import create_server
from mcpfactory_codegen.servers.scaffold import templates
from mcpfactory_runtime.client import connect_stdio
from tests.codegen.execution.documents import written
from tests.runtime.schemas.vendor_refusals import refusals

ROOT = Path(__file__).resolve().parents[2]
EVERYTHING = "everything"  # lists unchanged schemas, because the conformance suite compares them


async def listed(folder: Path, **environ: str) -> list[dict[str, Any]]:
    (package,) = {path.parent.name for path in (folder / "src").glob("*/__main__.py")}
    path = os.pathsep.join([str(folder / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    environ |= {"PYTHONPATH": path, "MCPFACTORY_DEMO": "1"}
    async with connect_stdio([sys.executable, "-m", package], env=environ, cwd=folder) as client:
        tools: list[dict[str, Any]] = await client.list_tools()
    return tools


@pytest.mark.parametrize("name", server_names())
def test_vendors_refuse_nothing_in_the_default_list_of_a_server(name: str) -> None:
    environ = {"MCPFACTORY_DIALECT": "plain"} if name == EVERYTHING else {}
    tools = asyncio.run(listed(ROOT / "servers" / name, **environ))
    assert tools
    assert refusals(tools) == []


@pytest.mark.parametrize("name", [template.name for template in templates()])
def test_vendors_refuse_nothing_in_the_default_list_of_a_template(name: str, tmp_path: Path) -> None:
    template = next(one for one in templates() if one.name == name)
    source = written(tmp_path) if template.requires_api_document else None
    created = create_server(tmp_path, name="plain-words", source=source, template=name)
    tools = asyncio.run(listed(created.path))
    assert refusals(tools) == []
