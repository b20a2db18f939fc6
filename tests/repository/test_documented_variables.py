"""Every environment variable that the README of a server documents reaches the server's process."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mcpfactory_codegen.servers.create import create_server
from mcpfactory_codegen.servers.scaffold import templates
from mcpfactory_pipeline.launch.start_command import server_environ
from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer

ROOT = Path(__file__).resolve().parents[2]
SERVERS = Workspace.find(ROOT).servers()
VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")
DOCUMENT = str(ROOT / "docs/examples/bookshop/openapi.yaml")


def dropped_variables(server: WorkspaceServer, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    documented = set(VARIABLE.findall((server.folder / "README.md").read_text("utf-8")))
    for name in documented:
        monkeypatch.setenv(name, "set")
    return documented - server_environ(server).keys()


@pytest.mark.parametrize("server", SERVERS, ids=[server.name for server in SERVERS])
def test_documented_variables_reach_the_server(server: WorkspaceServer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert dropped_variables(server, monkeypatch) == set()


def test_documented_variables_reach_the_server_of_every_template(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mcpfactory.toml").write_text("[workspace]\n")
    for template in templates():
        source = DOCUMENT if template.requires_api_document else None
        create_server(tmp_path / "servers", name=f"my-{template.name}", template=template.name, source=source)
    servers = Workspace.find(tmp_path).servers()
    assert len(servers) == len(templates())
    dropped = {server.name: dropped_variables(server, monkeypatch) for server in servers}
    assert {name: variables for name, variables in dropped.items() if variables} == {}
