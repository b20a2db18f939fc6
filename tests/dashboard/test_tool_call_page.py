"""A tool is tried in the browser: the server is really started, and asks a stand-in that answers as the API document says."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_codegen.servers.create import create_server
from mcpfactory_pipeline.checks.declared_tests import read_declared_tests
from tests.cli.conftest import InProcessCli
from tests.dashboard.conftest import WorkspaceBuilder, serving
from tests.dashboard.http_browser import PEOPLE, Browser, confirming

DOCUMENT = Path(__file__).parents[2] / "docs/examples/bookshop/openapi.yaml"


def installed(builder: WorkspaceBuilder, name: str, tools: list[dict[str, Any]] | None = None) -> None:
    """Give a server a candidate whose interpreter finds it in its sources, and which listed these tools when it was validated."""
    candidate = builder.built(name, "1.0.0")
    folder = builder.workspace.artifacts / name / candidate
    python = folder / "environments" / "validate" / "bin" / "python"
    python.parent.mkdir(parents=True)
    sources = shlex.quote(str(builder.root / "servers" / name / "src"))
    python.write_text(f'#!/bin/sh\nPYTHONPATH={sources} exec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    files = dict(builder.store.state(name).candidates[candidate].files)
    (folder / "environments" / "validate" / "ready.json").write_text(json.dumps({"files": files}))
    if tools is not None:
        (folder / "validate").mkdir(exist_ok=True)
        (folder / "validate" / "tools.json").write_text(json.dumps({"tools": tools}))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bookshop as it was made, to be copied."""
    return create_server(tmp_path_factory.mktemp("made"), name="shop", source=DOCUMENT).path


@pytest.fixture
def ada(shop: Path, builder: WorkspaceBuilder, monkeypatch: pytest.MonkeyPatch) -> Iterator[Browser]:
    """A workspace with the bookshop, whose candidate's interpreter finds it in its sources."""
    shutil.copytree(shop, builder.root / "servers" / "shop")
    installed(builder, "shop")
    monkeypatch.setenv("BOOKSHOP_CANARY", "a-secret-of-the-dashboard")
    with serving(builder.root, PEOPLE) as address:
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
    again = ada.post(path, {**form, "arg.isbn": "9780306406157"})  # the page is loaded again
    assert again.status == 403
    back = re.search(r'<a href="[^"]*(\?raw=[^"]*)">The form again</a>', again.text)
    assert back is not None
    assert '{"isbn": "9780306406157"}</textarea>' in unescape(ada.get(path + unescape(back[1])).text)

    refused = unescape(ada.post(path, {**confirming(answer.text), "raw": '{"isbn": "§ §"}'}).text)
    assert "an error" in refused
    assert 'Requests to the API</h3>\n<p class="quiet">Nothing.</p>' in refused
    broken = ada.post(path, {**confirming(refused), "raw": "{"})
    assert (broken.status, "not JSON" in broken.text) == (422, True)
    assert broken.text.index("not JSON") < broken.text.index("<form class=")
    assert re.search(r'<textarea id="raw"[^>]*>\{</textarea>', broken.text)
    program = json.dumps({"ticket": confirming(broken.text)["ticket"], "raw": "{"})
    refusal = ada.send("POST", path, program, Content_Type="application/json", Accept="application/json")
    assert (refusal.status, "not JSON" in refusal.data["error"]["message"]) == (422, True)
    program = json.dumps({"ticket": "", "raw": "\ud800"})
    assert ada.send("POST", path, program, Content_Type="application/json").status == 422


def test_text_that_looks_like_a_number_stays_text_where_it_may_also_be_null(ada: Browser) -> None:
    path = "/servers/shop/tools/add_review/try/"
    form = {**confirming(ada.get(path).text), "arg.isbn": "9780306406157", "arg.stars": "5", "arg.text": "12"}
    shown = unescape(ada.post(path, {**form, "arg.reader": "1984"}).text)
    assert '"reader": "1984"' in shown
    assert '"text": "12"' in shown
    assert "an error" not in shown


def test_a_tool_that_cannot_be_tried_says_why(ada: Browser, builder: WorkspaceBuilder) -> None:
    assert ada.get("/servers/shop/tools/none/try/").status == 404
    for folder in (builder.workspace.artifacts / "shop").glob("*/environments/*"):
        (folder / "ready.json").unlink()
    page = ada.get("/servers/shop/tools/get_book/try/").text
    assert "is not installed on this machine" in page
    assert "mcpfactory pipeline run shop --until validate --force" in page
    assert 'name="ticket"' not in page
    (builder.root / "servers/shop/tests/_generated/cases.json").unlink()
    assert "the API document has no example" in ada.get("/servers/shop/tools/get_book/try/").text


def test_nobody_tries_a_tool_without_a_login(ada: Browser) -> None:
    stranger = Browser(ada.address)
    assert stranger.get("/servers/shop/tools/get_book/try/").status == 303
    assert stranger.post("/servers/shop/tools/get_book/try/", {"arg.isbn": "1"}).status == 401
    assert "/try/" not in stranger.get("/servers/shop/tools/").text


def test_a_server_that_does_not_start_says_where_its_mistake_is(ada: Browser, builder: WorkspaceBuilder) -> None:
    path = "/servers/shop/tools/get_book/try/"
    file = builder.root / "servers/shop/src/shop_mcp/server.py"
    file.write_text(file.read_text() + "\nimport fruit_of_nobody\n")
    shown = unescape(ada.post(path, {**confirming(ada.get(path).text), "arg.isbn": "9780306406157"}).text)
    assert "servers/shop/src/shop_mcp/server.py:" in shown
    assert "ModuleNotFoundError: No module named 'fruit_of_nobody'" in shown
    assert "to [project] dependencies in servers/shop/pyproject.toml" in shown


def test_what_was_tried_is_kept_as_a_link_a_test_and_a_command(ada: Browser, builder: WorkspaceBuilder) -> None:
    path = "/servers/shop/tools/get_book/try/"
    isbn = "9780306406157"
    shown = ada.post(path, {**confirming(ada.get(path).text), "arg.isbn": isbn}).text
    link = unescape(re.findall(r'href="\./(\?raw=[^"]+)"', shown)[0])
    again = ada.get(path + link).text
    assert json.loads(unescape(re.findall(r"<textarea id=\"raw\"[^>]*>([^<]*)<", again)[0])) == {"isbn": isbn}
    command = unescape(re.findall(r'aria-label="Command"><code>([^<]+)<', shown)[0])
    assert shlex.split(command) == ["mcpfactory", "call", "shop", "get_book", "--args", json.dumps({"isbn": isbn})]

    text = unescape(re.findall(r'aria-label="Declared test"><code>([^<]+)<', shown)[0])
    folder = builder.root / "servers" / "shop"
    assert "servers/shop/tests/get_book.yaml" in shown
    (folder / "tests" / "get_book.yaml").write_text(text)
    second = ada.post(path, {**confirming(again), "arg.isbn": isbn}).text
    assert "servers/shop/tests/get_book1.yaml" in second  # what is kept takes the place of nothing
    (kept,) = read_declared_tests(folder)
    assert (kept.tool, kept.arguments, kept.status, kept.snapshot) == ("get_book", {"isbn": isbn}, "ok", True)
    assert kept.upstream[0]["response"]["status"] == 200
    run = InProcessCli(builder.root)
    assert run("test", "shop", "--update").code == 0
    assert run("test", "shop").code == 0
    (folder / "tests" / "get_book.yaml").write_text(text.replace("title: value", "title: another"))
    assert run("test", "shop").code == 1  # the API would answer otherwise than when it was tried


def test_tools_without_an_api_document_are_tried_as_they_are(builder: WorkspaceBuilder) -> None:
    create_server(builder.root / "servers", name="notes", template="minimal")
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    installed(builder, "notes", [{"name": "measure_text", "inputSchema": schema}])
    path = "/servers/notes/tools/measure_text/try/"
    with serving(builder.root, PEOPLE) as address:
        ada = Browser(address).login("Ada")
        assert "tools/measure_text/try/" in ada.get("/servers/notes/tools/").text
        page = ada.get(path).text
        assert "The effects of the tool are real." in page
        shown = unescape(ada.post(path, {**confirming(page), "arg.text": "one two three"}).text)
    assert "an error" not in shown
    assert "Requests to the API" not in shown
    assert '"words": 3' in re.findall(r'aria-label="Result"><code>(.*?)</code>', shown, re.DOTALL)[0]
