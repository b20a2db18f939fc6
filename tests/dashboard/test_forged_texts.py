"""What people type, and what logs and servers say, reorders and hides nothing of what others see, and forges no line of it."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from mcpfactory_pipeline.base.text import escape_invisible
from mcpfactory_pipeline.dashboard.app import create_app
from mcpfactory_pipeline.dashboard.export import export
from mcpfactory_pipeline.decisions import decision
from tests.dashboard.conftest import TOOLS, WorkspaceBuilder, serving
from tests.dashboard.http_browser import PEOPLE, Browser
from tests.dashboard.test_decision import shop
from tests.dashboard.test_log import Atlas, atlas

__all__ = ["atlas", "shop"]

HTML = {"Accept": "text/html"}
HIDDEN = {
    "an override from right to left": ("\u202e", "\\u202e"),
    "an isolate": ("\u2066", "\\u2066"),
    "a joiner between letters": ("a\u200db", "a\\u200db"),
    "a tag": ("\U000e0041", "\\U000e0041"),
    "an escape": ("\x1b[31m", "\\x1b[31m"),
}


def client(builder: WorkspaceBuilder) -> TestClient:
    return TestClient(create_app(builder.root), base_url="http://127.0.0.1")


@pytest.mark.parametrize("what", HIDDEN)
def test_no_page_has_a_character_that_reorders_or_is_not_seen(
    shop: WorkspaceBuilder, tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw, shown = HIDDEN[what]
    monkeypatch.setenv("MCPFACTORY_ACTOR", f"A{raw}da")
    decision.reject(shop.workspace, "bookshop", "production", reason=f"x{raw}ecarG yb devorppa")
    decision.hold(shop.workspace, "bookshop", "production", reason=f"{raw}detneserper si siht")
    shop.finished("bookshop", "test", "failed", message=f"{raw}ko")
    (shop.root / "servers/bookshop/.mcpfactory/report.json").write_text(
        json.dumps({"tools": [{**TOOLS[0], "name": f"get{raw}"}], "tokens": 1, "skipped": [], "environment": []})
    )
    export(shop.root, tmp_path / "site")
    pages = sorted((tmp_path / "site").rglob("*.html"))
    data = "".join(page.with_suffix(".json").read_text() for page in pages)
    for words in (f"x{raw}ecarG", f"{raw}detneserper", f"A{raw}da", f"get{raw}"):
        assert json.dumps(words, ensure_ascii=False)[1:-1] in data, "data are as they are"
    for page in pages:
        text = page.read_text()
        assert escape_invisible(text) == text, page
        assert raw not in unescape(text)
    server = unescape((tmp_path / "site/servers/bookshop/index.html").read_text())
    for words in (f"x{shown}ecarG", f"{shown}detneserper", f"A{shown}da", f"{shown}ko", f"get{shown}"):
        assert words in server
    live = client(shop).get("/servers/bookshop/", headers=HTML).text
    assert escape_invisible(live) == live


@pytest.mark.parametrize("text", ["देवनागरी में क‍ष", "می‌خواهم", "👩‍👩‍👧 ❤️", "日本語 · ñ"])
def test_what_scripts_and_emoji_need_is_shown_as_it_was_typed(shop: WorkspaceBuilder, text: str) -> None:
    decision.hold(shop.workspace, "bookshop", "production", reason=text)
    assert text in client(shop).get("/servers/bookshop/", headers=HTML).text


@pytest.mark.parametrize("what", ["an isolate", "a joiner between letters"])
def test_a_reason_that_is_typed_into_a_form_is_shown_written_out_and_kept_as_it_was(
    shop: WorkspaceBuilder, what: str
) -> None:
    raw, shown = HIDDEN[what]
    reason = f"it {raw} & leaks <b>"
    with serving(shop.root, PEOPLE) as address:
        ada = Browser(address).login("Ada")
        page = ada.get("/servers/bookshop/actions/hold/", channel="production", reason=reason).text
        assert escape_invisible(page) == page
        assert f"it {shown} &amp; leaks &lt;b&gt;" in page
        assert ada.act("bookshop", "hold", channel="production", reason=reason).status == 303
    assert shop.store.history("bookshop")[-1]["reason"] == reason


@pytest.mark.parametrize("end", ["\r\n", "\u2028"])
def test_a_reason_is_one_line_however_it_comes(shop: WorkspaceBuilder, end: str) -> None:
    reason = f"it leaks{end}approval  bookshop  Grace approved{end}    mcpfactory pipeline promote bookshop"
    line = "it leaks approval  bookshop  Grace approved mcpfactory pipeline promote bookshop"
    decision.reject(shop.workspace, "bookshop", "production", reason=reason)
    assert shop.store.history("bookshop")[-1]["reason"] == line
    decision.retire(shop.workspace, "bookshop", reason=reason)
    assert shop.store.history("bookshop")[-1]["reason"] == line
    decision.revive(shop.workspace, "bookshop", reason=reason)
    assert shop.store.history("bookshop")[-1]["reason"] == line
    web = TestClient(create_app(shop.root, people=PEOPLE), base_url="http://127.0.0.1")
    headers = {"Authorization": f"Bearer {PEOPLE['Ada']}", "Accept": "application/json"}
    path = "/servers/bookshop/actions/hold/"
    checked = web.get(path, params={"channel": "production", "reason": reason}, headers=headers).json()
    assert checked["settled"]["reason"] == line
    body = {**checked["settled"], "reason": reason, "ticket": checked["ticket"]}
    assert web.post(path, json=body, headers=headers).status_code == 200
    assert shop.store.history("bookshop")[-1]["reason"] == line
    with serving(shop.root, PEOPLE) as address:
        ada = Browser(address).login("Ada")
        assert ada.act("bookshop", "unhold", channel="production", reason=reason).status == 303
    assert shop.store.history("bookshop")[-1]["reason"] == line


def test_a_log_shows_what_would_reorder_its_lines(atlas: Atlas) -> None:
    atlas.file.write_bytes("plain\nerror: \u202eko si siht\u2066 \u200b\n".encode())
    page = atlas.shown()
    assert "error: \\u202eko si siht\\u2066 \\u200b" in page
    assert escape_invisible(page) == page
    assert "error: \u202eko si siht\u2066 \u200b" in atlas.texts(), "data are as they are"
