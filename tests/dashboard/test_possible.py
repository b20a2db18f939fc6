"""What a page offers goes through, and what does not is not offered: an action at a server, a rollback, a promotion, a decision about several."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest

from mcpfactory_pipeline.base.errors import PromotionError
from mcpfactory_pipeline.promotion import decision
from mcpfactory_pipeline.promotion.promote import promote, rollback
from tests.dashboard.conftest import Bench, serving
from tests.dashboard.person import PEOPLE, Browser
from tests.dashboard.test_action_routes import offered
from tests.dashboard.test_decision import POLICY

SERVER, DECIDE = "/servers/bookshop/", "/servers/bookshop/decide/production/"
ONE, TWO = "1.0.0-fedcba987654", "2.0.0-fedcba987654"


@pytest.fixture
def shop(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A server whose production has offered 1.0.0, and offers 2.0.0; Cli did it."""
    monkeypatch.setenv("MCPFACTORY_ACTOR", "Cli")
    config = bench.root / "mcpfactory.toml"
    config.write_text(config.read_text() + POLICY)
    bench.add("bookshop")
    bench.passed("bookshop", "generate")
    for version in ("1.0.0", "2.0.0"):
        offered(bench, "bookshop", version)
        decision.approve(bench.workspace, "bookshop", "production")
        promote(bench.workspace, "bookshop", "production")
    return bench


@pytest.fixture
def ada(shop: Bench) -> Iterator[Browser]:
    with serving(shop.root, PEOPLE) as address:
        yield Browser(address).login("Ada")


def back(shop: Bench) -> None:
    rollback(shop.workspace, "bookshop", "production", reason="orders fail")


def release(shop: Bench) -> None:
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


def test_a_channel_is_rolled_back_only_where_there_is_something_to_go_back_to(shop: Bench, ada: Browser) -> None:
    assert "Roll production back" in shown(ada, SERVER)
    assert "rollback" in told(ada)["actions"]
    assert tried(ada, "rollback") == ""
    back(shop)
    for lifts in (lambda _shop: None, release):
        lifts(shop)
        page = shown(ada, SERVER)
        assert "Roll production back" not in page
        assert "Roll staging back" in page
        assert [one["earlier"] for one in told(ada)["channels"]] == [True, False]
        assert tried(ada, "rollback") == "", "the form begins with staging"
    rollback(shop.workspace, "bookshop", "staging", reason="too")
    assert "rollback" not in buttons(shown(ada, SERVER))
    assert "rollback" not in told(ada)["actions"]


def test_a_hint_names_only_candidates_that_the_channel_may_return_to(shop: Bench) -> None:
    three = offered(shop, "bookshop", "3.0.0")
    with pytest.raises(PromotionError) as refused:
        rollback(shop.workspace, "bookshop", "production", reason="x", candidate=three)
    assert refused.value.hint == f"candidates: {ONE}"
    back(shop)
    for candidate in (ONE, three):
        with pytest.raises(PromotionError, match="is not one that production offered before") as refused:
            rollback(shop.workspace, "bookshop", "production", reason="x", candidate=candidate)
        assert "candidates:" not in refused.value.hint
        assert "there is none that production may return to" in refused.value.hint
        assert refused.value.hint.endswith("mcpfactory pipeline retire bookshop --channel production --reason '…'")


def test_promote_is_offered_for_the_channel_where_it_can_be_done_and_else_not_at_all(shop: Bench, ada: Browser) -> None:
    assert "promote" not in buttons(shown(ada, SERVER)), "all is where it may be"
    offered(shop, "bookshop", "3.0.0")
    assert "promote" not in buttons(shown(ada, SERVER)), "an approval is missing"
    decision.approve(shop.workspace, "bookshop", "production")
    assert "promote" in buttons(shown(ada, SERVER))
    assert tried(ada, "promote") == ""
    promote(shop.workspace, "bookshop", "production")
    back(shop)
    release(shop)
    assert "promote" not in buttons(shown(ada, SERVER))
    (channel, *_) = told(ada, f"{SERVER}actions/promote/")["inputs"]
    assert channel["value"] == "production", "staging offers it already"


def test_whatever_the_page_of_a_server_offers_goes_through(shop: Bench, ada: Browser) -> None:
    def offers() -> list[str]:
        found = [name for name in dict.fromkeys(buttons(shown(ada, SERVER))) if name not in {"rerun", "waive"}]
        assert [(name, tried(ada, name)) for name in found] == [(name, "") for name in found]
        return found

    assert offers() == ["rollback", "hold"]
    offered(shop, "bookshop", "3.0.0")
    assert offers() == ["approve", "reject", "rollback", "hold"]
    decision.hold(shop.workspace, "bookshop", "staging", reason="audit")
    decision.hold(shop.workspace, "bookshop", "production", reason="audit")
    assert offers() == ["release", "approve", "reject", "rollback"]


def test_several_are_promoted_only_where_one_of_them_may_be(shop: Bench, ada: Browser) -> None:
    def several() -> dict[str, bool]:
        form = ada.get("/").text.partition('id="several"')[2].partition("</form>")[0]
        found = re.findall(r"<button([^>]*)>(\w+) marked", form)
        return {name: "hidden disabled" not in facts for facts, name in found}

    offered(shop, "bookshop", "3.0.0")
    assert several() == {"Approve": True, "Promote": False, "Reject": True}
    decision.approve(shop.workspace, "bookshop", "production")
    assert several() == {"Approve": False, "Promote": True, "Reject": True}


def test_a_retired_server_says_so_and_is_revived(shop: Bench, ada: Browser) -> None:
    decision.retire(shop.workspace, "bookshop", reason="replaced")
    page, data = shown(ada, SERVER), told(ada)
    since = shop.store.history("bookshop")[-1]["at"]
    assert "retired by Cli: replaced, since" in page
    assert since in page
    assert "mcpfactory pipeline revive bookshop" in page
    assert (data["retired"], data["retired_since"], data["actions"]) == ("Cli: replaced", since, ["revive"])
    assert buttons(page) == ["revive"]
    assert "/decide/" not in page
    for force in ("", "1"):
        run = told(ada, f"{SERVER}actions/rerun/", check="1", force=force)
        assert run["problem"] == "bookshop is retired by Cli: replaced"
        assert run["hint"] == "mcpfactory pipeline revive bookshop"
    assert "Revive bookshop</a>" in shown(ada, f"{SERVER}actions/rerun/?check=1")
    assert ada.act("bookshop", "revive", reason="needed").status == 303
    assert told(ada)["retired"] == ""
    assert shop.store.history("bookshop")[-1]["event"] == "revived"
    assert "is not retired" in told(ada, f"{SERVER}actions/revive/", check="1")["problem"]


def test_a_held_channel_says_who_holds_it_since_when_and_why_where_one_decides(shop: Bench, ada: Browser) -> None:
    offered(shop, "bookshop", "3.0.0")
    decision.hold(shop.workspace, "bookshop", "production", reason="freeze of the year")
    since = shop.store.history("bookshop")[-1]["at"]
    lift = "mcpfactory pipeline unhold bookshop --channel production"
    assert told(ada, DECIDE)["closed"] == [
        {"kind": "held", "who": "Cli", "why": "freeze of the year", "since": since, "command": lift}
    ]
    page = shown(ada, DECIDE)
    assert "production is held by Cli: freeze of the year, since" in page
    assert since in page
    assert lift in page
    assert f"{SERVER}actions/release/?channel=production" in page.replace('href="../../', f'href="{SERVER}')
    assert lift in Browser(ada.address).get(DECIDE).text, "for whoever is not logged in the command"
    assert ">Approve <kbd>" in page, "that is possible, and moves nothing"
    checked = shown(ada, f"{SERVER}actions/approve/?channel=production").partition("What will happen")[2]
    assert "production stays closed to it: production is held by Cli: freeze of the year" in checked


@pytest.mark.parametrize("released", [False, True])
def test_after_a_rollback_the_page_of_the_decision_says_one_thing_and_has_the_way_on(
    shop: Bench, ada: Browser, released: bool
) -> None:
    back(shop)
    if released:
        release(shop)
    page, data = shown(ada, DECIDE), told(ada, DECIDE)
    assert "Rolled back by Cli" in page
    assert [(one["who"], one["why"]) for one in data["rolled_back"]] == [("Cli", "orders fail")]
    for words in ("Nobody is asked", "It has waited since", "Who asks"):
        assert words not in page
    assert (data["asks"], data["waits_since"]) == ("", "")
    assert data["source_channel"] == "staging"
    assert data["in_source_since"]
    assert "staging has offered it since" in page
    assert ("production is held by Cli: orders fail" in page) is not released
    assert data["approve_after_all"] == f"mcpfactory pipeline approve bookshop --channel production --candidate {TWO}"
    assert ">Approve after all <kbd>" in page
    assert data["way"] == (data["approve_after_all"] if released else data["closed"][0]["command"])
    assert ada.act("bookshop", "approve", channel="production", reason="mended").status == 303
    assert told(ada, DECIDE)["rolled_back"] == []
    assert "Rolled back by Cli" not in shown(ada, DECIDE).partition("Where it comes from")[0]


def test_what_is_rolled_back_out_of_a_channel_without_approvals_is_approved_from_its_form(
    shop: Bench, ada: Browser
) -> None:
    config = shop.root / "mcpfactory.toml"
    config.write_text(config.read_text().replace("approvals = 1\n", ""))
    assert "approve" not in buttons(shown(ada, SERVER))
    back(shop)
    release(shop)
    assert "approve" in buttons(shown(ada, SERVER))
    (channel, *_) = told(ada, f"{SERVER}actions/approve/")["inputs"]
    assert channel["values"] == ["production"]
    assert tried(ada, "approve") == ""


def test_why_nobody_is_asked_is_said_with_the_command_that_leads_on(shop: Bench, ada: Browser) -> None:
    three = offered(shop, "bookshop", "3.0.0")
    shop.finished("bookshop", "test", "failed", candidate=three, fresh=False)
    page, data = shown(ada, DECIDE), told(ada, DECIDE)
    assert "Nobody is asked about it now" in page
    assert "test failed" in data["stands"]
    assert data["stands"] in page
    assert data["way"] == "mcpfactory pipeline run bookshop"
    assert f'{SERVER}actions/rerun/"' in page.replace('href="../../', f'href="{SERVER}')
