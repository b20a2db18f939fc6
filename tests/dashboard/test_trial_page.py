"""A tool is tried in the browser: the server is really started, and asks a stand-in that answers as the API document says."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from mcpfactory_codegen.servers.create import create_server
from tests.dashboard.conftest import Bench, serving
from tests.dashboard.person import PEOPLE, Browser, confirming

DOCUMENT = Path(__file__).parents[2] / "docs/examples/bookshop/openapi.yaml"


@pytest.fixture
def ada(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Iterator[Browser]:
    """A workspace with the bookshop, whose candidate's interpreter finds it in its sources."""
    create_server(bench.root / "servers", name="shop", source=DOCUMENT)
    candidate = bench.built("shop", "1.0.0")
    folder = bench.workspace.artifacts / "shop" / candidate
    python = folder / "environments" / "validate" / "bin" / "python"
    python.parent.mkdir(parents=True)
    sources = shlex.quote(str(bench.root / "servers" / "shop" / "src"))
    python.write_text(f'#!/bin/sh\nPYTHONPATH={sources} exec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    files = dict(bench.store.state("shop").candidates[candidate].files)
    (folder / "environments" / "validate" / "ready.json").write_text(json.dumps({"files": files}))
    monkeypatch.setenv("BOOKSHOP_CANARY", "a-secret-of-the-dashboard")
    with serving(bench.root, PEOPLE) as address:
        yield Browser(address).login("Ada")


def test_a_tool_is_called_with_what_the_form_says_and_the_exchange_is_shown(ada: Browser) -> None:
    path = "/servers/shop/tools/get_book/try/"
    assert "tools/get_book/try/" in ada.get("/servers/shop/tools/").text
    page = ada.get(path).text
    assert 'value="9780141439518"' in page  # a value that the document allows
    form = confirming(page)
    answer = ada.post(path, {**form, "arg.isbn": "9780306406157"})
    shown = unescape(answer.text)
    assert answer.status == 200
    assert "GET /books/9780306406157" in shown
    assert '"title": "value"' in shown
    assert "a-secret-of-the-dashboard" not in shown
    assert ada.post(path, {**form, "arg.isbn": "9780306406157"}).status == 403  # the form was sent before

    refused = unescape(ada.post(path, {**confirming(answer.text), "raw": '{"isbn": "§ §"}'}).text)
    assert "an error" in refused
    assert 'What the API was asked</h3>\n<p class="quiet">Nothing.</p>' in refused
    halved = ada.post(path, {**confirming(refused), "raw": r'{"isbn": "\ud800"}'})
    assert (halved.status, r"\ud800" in halved.text) == (200, True)
    broken = ada.post(path, {**confirming(halved.text), "raw": "{"})
    assert (broken.status, "not JSON" in broken.text) == (422, True)
    program = json.dumps({"ticket": "", "raw": "\ud800"})
    assert ada.send("POST", path, program, Content_Type="application/json").status == 422


def test_text_that_looks_like_a_number_stays_text_where_it_may_also_be_null(ada: Browser) -> None:
    path = "/servers/shop/tools/add_review/try/"
    form = {**confirming(ada.get(path).text), "arg.isbn": "9780306406157", "arg.stars": "5", "arg.text": "12"}
    shown = unescape(ada.post(path, {**form, "arg.reader": "1984"}).text)
    assert '"reader": "1984"' in shown
    assert '"text": "12"' in shown
    assert "an error" not in shown


def test_a_tool_that_cannot_be_tried_says_why(ada: Browser, bench: Bench) -> None:
    assert ada.get("/servers/shop/tools/none/try/").status == 404
    for folder in (bench.workspace.artifacts / "shop").glob("*/environments/*"):
        (folder / "ready.json").unlink()
    page = ada.get("/servers/shop/tools/get_book/try/").text
    assert "is not installed on this machine" in page
    assert "mcpfactory pipeline run shop --until validate --force" in page
    assert 'name="ticket"' not in page
    (bench.root / "servers/shop/tests/_generated/cases.json").unlink()
    assert "no case from an API document" in ada.get("/servers/shop/tools/get_book/try/").text


def test_nobody_tries_a_tool_without_a_login(ada: Browser) -> None:
    stranger = Browser(ada.address)
    assert stranger.get("/servers/shop/tools/get_book/try/").status == 303
    assert stranger.post("/servers/shop/tools/get_book/try/", {"arg.isbn": "1"}).status == 401
    assert "/try/" not in stranger.get("/servers/shop/tools/").text


def test_a_server_that_does_not_start_says_where_its_mistake_is(ada: Browser, bench: Bench) -> None:
    path = "/servers/shop/tools/get_book/try/"
    file = bench.root / "servers/shop/src/shop_mcp/server.py"
    file.write_text(file.read_text() + "\nimport fruit_of_nobody\n")
    shown = unescape(ada.post(path, {**confirming(ada.get(path).text), "arg.isbn": "9780306406157"}).text)
    assert "servers/shop/src/shop_mcp/server.py:" in shown
    assert "ModuleNotFoundError: No module named 'fruit_of_nobody'" in shown
    assert "to [project] dependencies in servers/shop/pyproject.toml" in shown
