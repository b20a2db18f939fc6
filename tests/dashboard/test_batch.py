"""One decision about several candidates, over real HTTP: each goes through or is asked about again by itself."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest

from mcpfactory_pipeline.base.ids import acting_as
from mcpfactory_pipeline.decisions import decision
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import verify
from tests.dashboard.conftest import WorkspaceBuilder, serving
from tests.dashboard.http_browser import PEOPLE, Answer, Browser, confirming
from tests.dashboard.test_action_routes import POLICY, happened, kept, offered

SERVERS = ("atlas", "bookshop", "weather")


@pytest.fixture
def acting(four_servers: WorkspaceBuilder) -> Iterator[str]:
    config = four_servers.root / "mcpfactory.toml"
    config.write_text(config.read_text() + POLICY)
    for server in SERVERS:
        offered(four_servers, server, "1.3.0")
    with serving(four_servers.root, PEOPLE) as address:
        yield address


def marks(browser: Browser) -> dict[str, str]:
    """What the inbox lets one mark, by server."""
    parts = browser.get("/").text.split('<input type="checkbox" name="item" value="')[1:]
    found = [unescape(part.partition('"')[0]) for part in parts]
    return {mark.partition(" ")[0]: mark for mark in found}


def check(browser: Browser, action: str, *some: str, reason: str = "") -> Answer:
    query = [("item", mark) for mark in some] + ([("reason", reason)] if reason else [])
    return browser.get(f"/actions/{action}/?{urlencode(query)}")


def test_what_is_marked_is_approved_by_one_confirmation_and_each_history_says_by_whom(
    four_servers: WorkspaceBuilder, acting: str
) -> None:
    ada = Browser(acting).login("Ada")
    found = marks(ada)
    assert sorted(found) == list(SERVERS)
    before = kept(four_servers.root)
    page = check(ada, "approve", *found.values(), reason="read them").text
    assert kept(four_servers.root) == before, "a check does nothing"
    assert "Approve 3 candidates" in page
    for server in SERVERS:
        assert f"{server} 1.3.0 (1.3.0-fedcba987654) is approved for production" in page
    answer = ada.post("/actions/approve/", confirming(page))
    assert (answer.status, answer.headers["location"]) == (303, "/")
    told = ada.get("/").text
    assert all(f"{server} 1.3.0 (1.3.0-fedcba987654) is approved" in told for server in SERVERS)
    for server in SERVERS:
        assert happened(four_servers, server) == [("approved", "Ada")]
        assert four_servers.store.history(server)[-1]["reason"] == "read them"
    assert verify(four_servers.workspace) == []


def test_what_cannot_be_written_is_told_and_the_rest_goes_through(
    four_servers: WorkspaceBuilder, acting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = Browser(acting).login("Ada")
    form = confirming(check(ada, "approve", *marks(ada).values()).text)
    transaction = Store.transaction

    def full(store: Store, server: str, *, rehearsal: bool = False) -> Any:
        if server == "bookshop" and not rehearsal:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return transaction(store, server, rehearsal=rehearsal)

    monkeypatch.setattr(Store, "transaction", full)
    answer = ada.post("/actions/approve/", form)
    assert answer.status == 409
    assert "No space left on device" in answer.text
    assert [happened(four_servers, server) for server in SERVERS] == [[("approved", "Ada")], [], [("approved", "Ada")]]


def test_what_changed_since_the_check_is_asked_again_and_the_rest_goes_through(
    four_servers: WorkspaceBuilder, acting: str
) -> None:
    ada = Browser(acting).login("Ada")
    form = confirming(check(ada, "approve", *marks(ada).values()).text)
    with acting_as("Grace"):
        decision.reject(four_servers.workspace, "bookshop", "production", reason="prices are wrong")
    answer = ada.post("/actions/approve/", form)
    assert answer.status == 409
    text = unescape(answer.text)
    assert "bookshop: nothing was done, this has changed since you looked" in text
    assert "prices are wrong" in text
    assert "Approve 1 candidate" in text
    assert [happened(four_servers, name)[-1] for name in SERVERS] == [
        ("approved", "Ada"), ("rejected", "Grace"), ("approved", "Ada"),
    ]  # fmt: skip
    again = confirming(answer.text)
    assert [value.partition(" ")[0] for name, value in again.items() if name.startswith("item-")] == ["bookshop"]
    assert ada.post("/actions/approve/", again).status == 303
    assert happened(four_servers, "bookshop")[-1] == ("approved", "Ada")


def test_a_rejection_of_several_asks_for_its_reason_first(four_servers: WorkspaceBuilder, acting: str) -> None:
    ada = Browser(acting).login("Ada")
    found = marks(ada)
    page = check(ada, "reject", *found.values()).text
    assert 'name="ticket-1"' not in page
    assert "is missing" not in page, "nobody was asked yet"
    assert page.count('<input type="hidden" name="item"') == len(SERVERS)
    form = confirming(check(ada, "reject", *found.values(), reason="not today").text)
    assert ada.post("/actions/reject/", form).status == 303
    assert [happened(four_servers, name) for name in SERVERS] == [[("rejected", "Ada")]] * len(SERVERS)


def test_what_cannot_be_done_is_said_and_has_no_ticket(four_servers: WorkspaceBuilder, acting: str) -> None:
    ada = Browser(acting).login("Ada")
    found = marks(ada)
    gone = "nobody production 1.0-ab "
    page = unescape(check(ada, "promote", found["bookshop"], gone).text)
    assert "bookshop: 1.3.0 (1.3.0-fedcba987654) cannot be promoted to production" in page or "missing" in page
    assert "nobody: " in page
    assert 'name="ticket-1"' not in page
    assert check(ada, "hold", found["bookshop"]).status == 404
    assert ada.get("/actions/approve/").status == 422
    assert check(ada, "approve", "bookshop").status == 422


def test_a_ticket_that_is_none_does_nothing_to_any_of_them(four_servers: WorkspaceBuilder, acting: str) -> None:
    ada, grace = Browser(acting).login("Ada"), Browser(acting).login("Grace")
    page = check(ada, "approve", *marks(ada).values()).text
    before = kept(four_servers.root)
    assert grace.post("/actions/approve/", confirming(page)).status == 403
    assert ada.post("/actions/approve/", confirming(page) | {"ticket-2": "x" * 43}).status == 403
    assert ada.post("/actions/approve/", confirming(page)).status == 403, "its tickets are used up"
    form = confirming(check(ada, "approve", *marks(ada).values()).text)
    assert ada.post("/actions/approve/", form | {"reason": "another"}).status == 403
    form = confirming(check(ada, "approve", *marks(ada).values()).text)
    assert ada.post("/actions/reject/", form | {"reason": "no"}).status == 403
    form = confirming(check(ada, "approve", *marks(ada).values()).text)
    assert ada.post("/actions/approve/", form, Origin="http://evil.example").status == 403
    assert kept(four_servers.root) == before
    assert ada.post("/actions/approve/", form).status == 303
    assert ada.post("/actions/approve/", form).status == 403, "once"
    assert [len(happened(four_servers, name)) for name in SERVERS] == [1, 1, 1]


def test_nobody_is_led_to_the_login_and_back_with_what_was_marked(acting: str) -> None:
    found = marks(Browser(acting).login("Ada"))
    answer = check(Browser(acting), "approve", found["atlas"])
    assert answer.status == 303
    assert "item%3Datlas" in answer.headers["location"]
    assert 'name="item"' not in Browser(acting).get("/").text


def test_programs_confirm_what_the_check_settled(four_servers: WorkspaceBuilder, acting: str) -> None:
    def send(method: str, path: str, body: dict[str, Any] | None = None) -> Answer:
        headers = {"Accept": "application/json", "Content_Type": "application/json", "Origin": ""}
        text = json.dumps(body) if body is not None else ""
        return Browser(acting).send(method, path, text, **headers, Authorization=f"Bearer {PEOPLE['Grace']}")

    path = "/actions/approve/"
    page = send("GET", f"{path}?item=atlas+production++&item=weather+production++&reason=read").data
    assert [item["server"] for item in page["items"]] == ["atlas", "weather"]
    items = [{**item["settled"], "server": item["server"], "ticket": item["ticket"]} for item in page["items"]]
    with acting_as("Ada"):
        decision.hold(four_servers.workspace, "weather", "production", reason="audit")
    answer = send("POST", path, {"reason": "read", "items": items})
    assert answer.status == 409
    assert len(answer.data["done"]) == 1
    assert [item["server"] for item in answer.data["items"]] == ["weather"]
    assert answer.data["items"][0]["changes"]
    assert send("POST", path, {"items": "atlas"}).status == 422
    assert send("POST", path, {"items": []}).status == 422
