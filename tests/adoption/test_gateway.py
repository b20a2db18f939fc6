"""Adopted servers behind the gateway: one that is started by its command, and one at a URL."""

from __future__ import annotations

import pytest

from mcpfactory_pipeline.maintenance.workspace_setup import apply_setup, plan_workspace_setup
from mcpfactory_pipeline.serve.gateway import make_gateway
from mcpfactory_pipeline.workspace.workspace import Workspace
from mcpfactory_runtime.testing import connect
from tests.adoption.conftest import put
from tests.adoption.registries import node_files
from tests.adoption.test_url import running

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("adopted_gateway")]


async def test_both_are_called_through_one_endpoint(tmp_path):
    space = apply_setup(plan_workspace_setup(tmp_path / "space"), git=False)
    put(space.root / "tools", node_files())
    with running(tmp_path, "0") as port:
        put(
            space.root / "servers",
            {
                "local/mcpfactory.toml": '[server]\nname = "local"\n[adopted]\nkind = "command"\npath = "tools"\n'
                'start = ["node", "greeter.js"]\nfiles = ["words.json"]\n',
                "far/mcpfactory.toml": f'[server]\nname = "far"\n[adopted]\nkind = "url"\nurl = "http://127.0.0.1:{port}/mcp"\n',
            },
        )
        gateway = make_gateway(Workspace.find(space.root), ())
        async with connect(gateway.server) as client:
            tools = {tool["name"] for tool in await client.list_tools()}
            assert tools == {"local_greet", "far_greet"}
            for tool in sorted(tools):
                said = await client.call_tool(tool, {"name": "Ada"})
                assert said["content"][0]["text"] == "Hello, Ada (3)"
        assert {row.server: row.errors for row in gateway.rows()} == {"local": 0, "far": 0}
