"""Which variables an entry refers to: those of the server's report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.delivery.clients.install import server_target
from mcpfactory_pipeline.delivery.clients.launch_commands import launch
from mcpfactory_pipeline.maintenance.workspace_setup import apply_setup, plan_workspace_setup
from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer


@pytest.fixture
def shop(tmp_path: Path) -> tuple[Workspace, WorkspaceServer]:
    space = apply_setup(plan_workspace_setup(tmp_path / "ws"), git=False)
    folder = space.root / "servers/shop"
    (folder / ".mcpfactory").mkdir(parents=True)
    (folder / "mcpfactory.toml").write_text('[server]\nname = "shop"\npackage = "shop_mcp"\n')
    (folder / "pyproject.toml").write_text('[project]\nname = "shop-mcp"\nversion = "1.0"\n')
    return space, space.server("shop")


def tell(server: WorkspaceServer, flows: list[str]) -> None:
    rows = [("SHOP_TOKEN", True), ("SHOP_ID", False), ("SHOP_SECRET", True), ("SHOP_BASE_URL", False)]
    environment = [{"name": name, "secret": secret} for name, secret in rows]
    schemes = [
        {"name": "auth", "variables": [name for name, _ in rows[:3]], "flows": [{"grant": flow} for flow in flows]}
    ]
    report = {"environment": environment, "credentials": {"schemes": schemes}}
    (server.folder / ".mcpfactory/report.json").write_text(json.dumps(report))


def test_every_variable_is_referred_to(shop):
    space, server = shop
    tell(server, ["clientCredentials"])
    reached, source, version = launch(space, server)
    assert (source, version) == ("source", "1.0")
    assert reached.variables == ("SHOP_TOKEN", "SHOP_SECRET")
    assert reached.plain == ("SHOP_ID", "SHOP_BASE_URL")


def test_nothing_stands_in_the_way_of_a_login(shop):
    space, server = shop
    tell(server, ["authorizationCode"])
    reached, _, _ = launch(space, server)
    assert (reached.variables, reached.plain) == ((), ("SHOP_ID", "SHOP_BASE_URL"))


def test_a_value_may_be_given_and_a_reference_added(shop):
    space, server = shop
    tell(server, ["authorizationCode"])
    target = server_target(space, "shop", environ=["SHOP_BASE_URL=https://a.test", "SHOP_SECRET"])
    assert target.reached.variables == ("SHOP_SECRET",)
    assert target.reached.plain == ("SHOP_ID",)
    assert target.reached.literals["SHOP_BASE_URL"] == "https://a.test"


def test_a_server_without_report_needs_nothing(shop):
    reached, _, _ = launch(*shop)
    assert reached.variables == reached.plain == ()


def test_a_server_that_does_not_say_what_it_is_called_is_refused(shop):
    space, server = shop
    (server.folder / "pyproject.toml").write_text("[tool.x]\n")
    with pytest.raises(ConfigError):
        launch(space, server)
