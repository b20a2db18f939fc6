"""The inbox as a page: what has one cause stands together, for whom it waits by name, and one button that works."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime

import pytest
from starlette.testclient import TestClient

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.dashboard.app import create_app
from mcpfactory_pipeline.dashboard.facts import ServerFacts, WorkspaceFacts
from mcpfactory_pipeline.dashboard.inbox import inbox
from mcpfactory_pipeline.views.inbox import InboxItem
from mcpfactory_pipeline.workspace.policy import ChannelPolicy
from mcpfactory_pipeline.workspace.workspace import Workspace, owners_of
from tests.dashboard.conftest import WorkspaceBuilder, serving
from tests.dashboard.http_browser import PEOPLE, Browser
from tests.pipeline.staged_workspace import settings_of

HTML = {"Accept": "text/html"}


def errored(server: str, message: str = "build errored: hatchling cannot be resolved") -> InboxItem:
    return InboxItem("errored", server, "build", message, f"mcpfactory pipeline run {server}", "2026-01-01T00:00:00Z")


def approval(server: str, version: str) -> InboxItem:
    words = f"{version} ({version}-0123456789ab) for production: 1 of 1 approval missing"
    command = f"mcpfactory pipeline approve {server} --channel production --candidate {version}-0123456789ab"
    return InboxItem("approval", server, "production", words, command)


def facts(*items: InboxItem, approvers: tuple[str, ...] = (), **owners: tuple[str, ...]) -> WorkspaceFacts:
    servers = tuple(
        ServerFacts(
            "w", name, {}, items=tuple(item for item in items if item.server == name), owners=owners.get(name, ())
        )
        for name in dict.fromkeys(item.server for item in items)
    )
    channels = (
        ChannelPolicy(name="staging"),
        ChannelPolicy(name="production", source="staging", approvals=1, approvers=approvers),
    )
    return WorkspaceFacts("w", servers, channels, datetime(2026, 1, 2, tzinfo=UTC))


def test_what_has_one_cause_is_one_group_whatever_server_and_version_it_is() -> None:
    other = errored("zoo", "build errored: no space left")
    items = (errored("a"), other, errored("b"), errored("c"), approval("a", "1.0"), approval("b", "2.3.1"))
    view = inbox(facts(*items))
    assert [(group.kind, group.number, group.cause) for group in view.groups] == [
        ("errored", 3, "build errored: hatchling cannot be resolved"),
        ("errored", 1, "build errored: no space left"),
        ("approval", 2, "production: 1 of 1 approval missing"),
    ]
    assert [item for group in view.groups for item in group.items] == list(view.items)
    assert view.pager.total == len(items)
    assert [item.decision for item in view.items] == ["", "", "", "", "production", "production"]


def test_what_waits_for_me_is_what_i_own_may_approve_or_anybody_may_do() -> None:
    items = (errored("a"), errored("b"), errored("c"), approval("a", "1.0"))
    every = facts(*items, approvers=("Grace",), a=("Ada",), b=("Linus",))
    assert [(item.server, item.kind) for item in inbox(every, whose="ada").items] == [
        ("a", "errored"),
        ("c", "errored"),
    ]
    assert [item.server for item in inbox(every, whose="Grace").items] == ["c", "a"]
    whom = {(item.server, item.kind): item.whom for item in inbox(every).items}
    assert whom == {
        ("a", "errored"): "Ada",
        ("b", "errored"): "Linus",
        ("c", "errored"): "operators of the workspace",
        ("a", "approval"): "Grace",
    }
    open_to_all = dataclasses.replace(
        every, channels=(ChannelPolicy(name="production", source="staging", approvals=1),)
    )
    assert ("a", "approval") in [(item.server, item.kind) for item in inbox(open_to_all, whose="Ada").items]


def test_owners_are_those_of_the_longest_pattern_and_else_of_codeowners(builder: WorkspaceBuilder) -> None:
    table = {"*": ["Margaret"], "billing-*": ["Linus"], "billing-eu": ["Ada", "Grace"]}
    owners = owners_of(dataclasses.replace(builder.workspace, settings=settings_of(owners=table)))
    assert [owners(name) for name in ("shop", "billing-us", "billing-eu")] == [
        ("Margaret",),
        ("Linus",),
        ("Ada", "Grace"),
    ]
    lines = "* @everyone\n/servers/ @platform  # all\nservers/shop/ @Ada g@example.com\nservers/*/tests @tester\nservers/b*/ @b\n*.md @docs\n"
    (builder.root / "CODEOWNERS").write_text(lines)
    owners = owners_of(builder.workspace)
    assert [owners(name) for name in ("shop", "billing", "other")] == [("Ada", "g@example.com"), ("b",), ("platform",)]
    config = builder.root / "mcpfactory.toml"
    before = config.read_text()
    config.write_text(before + '\n[owners]\nshop = ["Grace"]\n')
    assert owners_of(Workspace.find(builder.root))("shop") == ("Grace",)
    for wrong in ('shop = "Grace"', "shop = [1]"):
        config.write_text(f"{before}\n[owners]\n{wrong}\n")
        with pytest.raises(ConfigError, match=r"owners.shop.*: must be a"):
            owners_of(Workspace.find(builder.root))


def test_the_page_has_one_button_a_row_and_keeps_what_waits_for_who_looks(four_servers: WorkspaceBuilder) -> None:
    config = four_servers.root / "mcpfactory.toml"
    config.write_text(config.read_text() + '\n[owners]\nzebra = ["Grace"]\nweather = ["Ada"]\n')
    with serving(four_servers.root, PEOPLE) as address:
        ada = Browser(address).login("Ada")
        page = ada.get("/").text
        assert '<input type="checkbox" name="for" value="Ada">' in page
        assert 'href="servers/zebra/actions/run/"' in page
        mine = ada.get("/", **{"for": "Ada"}).text
        assert "servers/zebra/" not in mine
        assert "servers/weather/" in mine
        rows = [row.partition("</li>")[0] for row in page.split('<li class="row')[1:]]
        assert len(rows) == len(ada.get("/?format=json").data["items"])
        assert [row.count('class="act"') <= 1 for row in rows] == [True] * len(rows)


def test_what_failed_has_a_way_to_its_log_where_that_is_on_this_machine(four_servers: WorkspaceBuilder) -> None:
    client = TestClient(create_app(four_servers.root), base_url="http://127.0.0.1")
    link = "servers/atlas/logs/validate/#wrong"
    pages = {"/": link, "/servers/atlas/": 'logs/validate/#wrong">Log of validate</a>'}
    assert all(there not in client.get(path, headers=HTML).text for path, there in pages.items())
    file = four_servers.workspace.artifacts / "atlas" / "logs" / "validate.log"
    file.parent.mkdir(parents=True)
    file.write_text("E   it failed\n")
    for path, there in pages.items():
        assert there in client.get(path, headers=HTML).text, path
    file.unlink()
    assert link not in client.get("/", headers=HTML).text
