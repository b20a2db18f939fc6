"""What a page offers goes through, and what does not is not offered: an action at a server, a rollback, a promotion, a decision about several."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest

from mcpfactory_pipeline.decisions import decision
from mcpfactory_pipeline.decisions.promote import promote, rollback
from tests.dashboard.conftest import WorkspaceBuilder, serving
from tests.dashboard.http_browser import PEOPLE, Browser
from tests.dashboard.test_action_routes import offered
from tests.dashboard.test_decision import POLICY

SERVER, DECIDE = "/servers/bookshop/", "/servers/bookshop/decide/production/"
ONE, TWO = "1.0.0-fedcba987654", "2.0.0-fedcba987654"


@pytest.fixture
def shop(builder: WorkspaceBuilder, monkeypatch: pytest.MonkeyPatch) -> WorkspaceBuilder:
    """A server whose production has offered 1.0.0, and offers 2.0.0; Cli did it."""
    monkeypatch.setenv("MCPFACTORY_ACTOR", "Cli")
    config = builder.root / "mcpfactory.toml"
    config.write_text(config.read_text() + POLICY)
    builder.add("bookshop")
    builder.passed("bookshop", "generate")
    for version in ("1.0.0", "2.0.0"):
        offered(builder, "bookshop", version)
        decision.approve(builder.workspace, "bookshop", "production")
        promote(builder.workspace, "bookshop", "production")
    return builder


@pytest.fixture
def ada(shop: WorkspaceBuilder) -> Iterator[Browser]:
    with serving(shop.root, PEOPLE) as address:
        yield Browser(address).login("Ada")


def back(shop: WorkspaceBuilder) -> None:
    rollback(shop.workspace, "bookshop", "production", reason="orders fail")


def release(shop: WorkspaceBuilder) -> None:
    decision.release(shop.workspace, "bookshop", "production")


def shown(ada: Browser, path: str) -> str:
    return unescape(ada.get(path).text)


def told(ada: Browser, path: str = SERVER, **query: str) -> dict[str, Any]:
    return ada.get(path, format="json", **query).data


def buttons(page: str) -> list[str]:
    return re.findall(r'href="[^"]*?actions/([a-z-]+)/', page)


def tried(ada: Browser, action: str) -> str:
    """What the form of an action comes to that is sent as it is, but for a reason."""
    form = told(ada, f"{SERVER}actions/{action}/")
    given = {one["name"]: one["value"] for one in form["inputs"] if one["value"]}
    problem: str = told(ada, f"{SERVER}actions/{action}/", **{**given, "reason": "because", "check": "1"})["problem"]
    return problem


def test_whatever_the_page_of_a_server_offers_goes_through(shop: WorkspaceBuilder, ada: Browser) -> None:
    def offers() -> list[str]:
        found = [name for name in dict.fromkeys(buttons(shown(ada, SERVER))) if name not in {"run", "waive"}]
        assert [(name, tried(ada, name)) for name in found] == [(name, "") for name in found]
        return found

    assert offers() == ["rollback", "hold"]
    offered(shop, "bookshop", "3.0.0")
    assert offers() == ["approve", "reject", "rollback", "hold"]
    decision.hold(shop.workspace, "bookshop", "staging", reason="audit")
    decision.hold(shop.workspace, "bookshop", "production", reason="audit")
    assert offers() == ["unhold", "approve", "reject", "rollback"]


def test_a_retired_server_says_so_and_is_revived(shop: WorkspaceBuilder, ada: Browser) -> None:
    decision.retire(shop.workspace, "bookshop", reason="replaced")
    page, data = shown(ada, SERVER), told(ada)
    since = shop.store.history("bookshop")[-1]["at"]
    assert "retired by Cli: replaced, since" in page
    assert since in page
    assert "mcpfactory pipeline revive bookshop" in page
    assert (data["retired"], data["retired_since"], [one["name"] for one in data["actions"]]) == (
        "Cli: replaced",
        since,
        ["revive"],
    )
    assert buttons(page) == ["revive"]
    assert "/decide/" not in page
    for force in ("", "1"):
        run = told(ada, f"{SERVER}actions/run/", check="1", force=force)
        assert run["problem"] == "bookshop is retired by Cli: replaced"
        assert run["hint"] == "mcpfactory pipeline revive bookshop"
    assert "Revive bookshop</a>" in shown(ada, f"{SERVER}actions/run/?check=1")
    assert ada.act("bookshop", "revive", reason="needed").status == 303
    assert told(ada)["retired"] == ""
    assert shop.store.history("bookshop")[-1]["event"] == "revived"
    assert "is not retired" in told(ada, f"{SERVER}actions/revive/", check="1")["problem"]


def test_a_held_channel_says_who_holds_it_since_when_and_why_where_one_decides(
    shop: WorkspaceBuilder, ada: Browser
) -> None:
    offered(shop, "bookshop", "3.0.0")
    decision.hold(shop.workspace, "bookshop", "production", reason="freeze of the year")
    since = shop.store.history("bookshop")[-1]["at"]
    lift = "mcpfactory pipeline unhold bookshop --channel production --reason '…'"
    assert told(ada, DECIDE)["closed"] == [
        {"kind": "held", "who": "Cli", "why": "freeze of the year", "since": since, "command": lift}
    ]
    page = shown(ada, DECIDE)
    assert "production is held by Cli: freeze of the year, since" in page
    assert since in page
    assert lift in page
    assert f"{SERVER}actions/unhold/?channel=production" in page.replace('href="../../', f'href="{SERVER}')
    assert lift in shown(Browser(ada.address), DECIDE), "for whoever is not logged in the command"
    assert ">Approve <kbd>" in page, "that is possible, and moves nothing"
    checked = shown(ada, f"{SERVER}actions/approve/?channel=production").partition("What will happen")[2]
    assert "production stays closed to it: production is held by Cli: freeze of the year" in checked


def test_after_a_rollback_the_page_of_the_decision_says_one_thing_and_has_the_way_on(
    shop: WorkspaceBuilder, ada: Browser
) -> None:
    back(shop)
    page, data = shown(ada, DECIDE), told(ada, DECIDE)
    assert "Rolled back by Cli" in page
    assert [(one["who"], one["why"]) for one in data["rolled_back"]] == [("Cli", "orders fail")]
    for words in ("No decision is pending", "It has waited since", "Who asks"):
        assert words not in page
    assert (data["asks"], data["waits_since"]) == ("", "")
    assert data["source_channel"] == "staging"
    assert data["in_source_since"]
    assert "staging has offered it since" in page
    assert "production is held by Cli: orders fail" in page
    assert data["approve_after_all"] == f"mcpfactory pipeline approve bookshop --channel production --candidate {TWO}"
    assert ">Approve after all <kbd>" in page
    assert data["way"] == data["closed"][0]["command"]
    assert ada.act("bookshop", "approve", channel="production", reason="mended").status == 303
    assert told(ada, DECIDE)["rolled_back"] == []
    assert "Rolled back by Cli" not in shown(ada, DECIDE).partition("Where it comes from")[0]
