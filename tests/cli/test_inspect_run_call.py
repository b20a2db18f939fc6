"""A made server is looked at, started and called, against the real bookshop."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from mcpfactory_runtime.revisions import LATEST_LEGACY
from mcpfactory_runtime.upstream import StubUpstream
from tests.cli.conftest import InProcessCli
from tests.timeouts import TIMEOUT


def test_inspect_says_where_every_argument_travels(shop):
    shown = shop("inspect", "bookshop", "--json").data
    tools = {tool["name"]: tool for tool in shown["tools"]}
    order = tools["place_order"]
    assert order["operation"] == {"method": "POST", "path": "/orders", "operationId": "placeOrder"}
    bound = {(where["in"], where["name"]) for where in order["arguments"].values()}
    assert {("header", "Idempotency-Key"), ("body", "lines"), ("body", "address")} <= bound
    assert all(tool["tokens"] > 0 for tool in tools.values())
    assert [variable["name"] for variable in shown["environment"]] == ["MCPF_BOOKSHOP_API_KEY"]


def test_inspect_prints_a_table_for_people(shop):
    out = shop("inspect", "bookshop").out
    assert "GET /books/{isbn}" in out
    assert "MCPF_BOOKSHOP_API_KEY" in out


def test_inspect_names_what_a_client_refuses_with_its_limit_and_source(shop):
    assert shop("inspect", "bookshop", "--client", "gemini", "--json").data["refusals"] == []
    manifest = shop.folder / "servers/bookshop/src/bookshop_mcp/_generated/manifest.json"
    kept = manifest.read_text("utf-8")
    changed = {**json.loads(kept), "dialect": "standard"}
    changed["tools"][0]["inputSchema"]["properties"]["kind"] = {"enum": ["", "a"]}
    manifest.write_text(json.dumps(changed), "utf-8")
    try:
        (refusal,) = shop("inspect", "bookshop", "--client", "gemini", "--json").data["refusals"]
    finally:
        manifest.write_text(kept, "utf-8")
    assert (refusal["tool"], refusal["place"]) == (changed["tools"][0]["name"], "/inputSchema/properties/kind")
    assert refusal["limit"]["subject"] == "enum"
    assert refusal["limit"]["source"].startswith("https://")
    unknown = shop("inspect", "bookshop", "--client", "nobody")
    assert unknown.code == 3
    assert "gemini" in unknown.err


def test_call_reaches_the_real_service(shop):
    found = shop("call", "bookshop", "list_books", "--arg", "q=austen", "--arg", "max_price=8")
    assert found.code == 0, found.err
    assert json.loads(found.out)["books"][0]["isbn"] == "9780141439518"


def test_call_sends_the_credential_and_a_body(shop):
    changed = shop("call", "bookshop", "change_book", "--args", '{"isbn": "9780141182674", "stock": 9}', "--json")
    assert changed.data["structuredContent"]["stock"] == 9


def test_call_reads_arguments_from_files(shop, tmp_path):
    (tmp_path / "q.txt").write_text("austen")
    (tmp_path / "all.json").write_text('{"q": "austen"}')
    for given in (("-a", f"q=@{tmp_path / 'q.txt'}"), ("--args", f"@{tmp_path / 'all.json'}")):
        found = shop("call", "bookshop", "list_books", "-a", "max_price=8", *given)
        assert json.loads(found.out)["books"][0]["isbn"] == "9780141439518", found.err
    assert json.loads(shop("call", "bookshop", "list_books", "-a", "q=@@austen").out)["books"] == []


def test_call_sends_a_file_with_its_media_type(empty):
    picture = {"schema": {"type": "string", "format": "binary"}}
    operation = {
        "operationId": "setCover",
        "requestBody": {"required": True, "content": {"image/png": picture, "image/jpeg": picture}},
        "responses": {"204": {"description": "Done."}},
    }
    info, servers = {"title": "Covers", "version": "1"}, [{"url": "https://api.test"}]
    document = {"openapi": "3.1.0", "info": info, "servers": servers, "paths": {"/cover": {"put": operation}}}
    assert empty("init").code == 0
    (empty.folder / "covers.json").write_text(json.dumps(document))
    (empty.folder / "front.jpg").write_bytes(b"\xff\xd8\xff")
    assert empty("new", "--from-openapi", "covers.json", "--name", "covers").code == 0
    case = {"request": {"method": "PUT", "path": "/cover"}, "response": {"status": 204}}
    with StubUpstream([case]) as stub:
        empty.environ["MCPFACTORY_BASE_URL"] = stub.base_url
        done = empty("call", "covers", "set_cover", "-a", "body=@front.jpg")
        assert done.code == 0, done.out + done.err
    (request,) = stub.requests
    assert (request.body, request.header("content-type")) == (b"\xff\xd8\xff", "image/jpeg")


def test_a_refusal_of_the_api_is_exit_1_with_its_own_words(shop):
    done = shop("call", "bookshop", "get_book", "--arg", "isbn=9999999999999")
    assert done.code == 1
    assert "no book has the ISBN" in done.out


def test_run_speaks_mcp_on_stdio_and_ends_with_its_input(shop):
    hello = {
        "protocolVersion": LATEST_LEGACY.name,
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    sent = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}) + "\n"
    done = subprocess.run(
        [sys.executable, "-m", "mcpfactory", "run", "bookshop"],
        cwd=shop.folder, input=sent, env=os.environ, capture_output=True, text=True, timeout=TIMEOUT, check=True,
    )  # fmt: skip
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == [1]
    assert answers[0]["result"]["serverInfo"]["name"] == "bookshop"


def test_validate_judges_a_server_from_its_source(shop):
    done = shop("validate", "bookshop", "--json")
    assert done.code == 0, json.dumps(done.data.get("findings"), indent=1)[:3000]
    assert done.data["score"] >= 80


def test_validate_says_no_to_what_does_not_speak(empty):
    done = empty("validate", "--command", f"{sys.executable} -c pass", "--timeout", "10")
    assert done.code == 1


def test_doctor_names_the_missing_credential(shop):
    done = shop("doctor", "--json")
    assert done.code == 0
    assert all(diagnosis["about"] and diagnosis["message"] for diagnosis in done.data)
    without = shop.at(shop.folder)("doctor", "bookshop")
    assert "MCPF_BOOKSHOP_API_KEY" in without.out


def test_a_call_with_a_missing_or_wrong_credential_names_the_remedy(shop, service):
    call = ("call", "bookshop", "change_book", "-a", "isbn=9780141439518", "-a", "stock=9")
    environ = {"MCPF_BOOKSHOP_BASE_URL": service}
    missing = InProcessCli(shop.folder, environ)(*call)
    assert (missing.code, "hint: export MCPF_BOOKSHOP_API_KEY=" in missing.err) == (1, True)
    wrong = InProcessCli(shop.folder, {**environ, "MCPF_BOOKSHOP_API_KEY": "wrong"})(*call)
    assert (wrong.code, "hint: check the value of MCPF_BOOKSHOP_API_KEY" in wrong.err) == (1, True)
    assert "mcpfactory doctor bookshop" in wrong.err
    other = shop("call", "bookshop", "get_book", "-a", "isbn=1")
    assert (other.code, "MCPF_BOOKSHOP_API_KEY" in other.err) == (1, False)


@pytest.mark.parametrize(
    ("wanted", "about", "level", "said"),
    [
        ("none", "isolation", "ok", "none: "),
        ("auto", "isolation", None, ""),
        ("chroot", "workspace", "error", 'pipeline.isolation: "chroot"'),
    ],
)
def test_doctor_says_what_keeps_code_of_a_server_apart(empty, wanted, about, level, said):
    (empty.folder / "mcpfactory.toml").write_text(f'[workspace]\nname = "x"\n[pipeline]\nisolation = "{wanted}"\n')
    (found,) = (one for one in empty("doctor", "--json").data if one["about"] == about)
    assert level in {None, found["level"]}
    assert found["message"].startswith(said) or said in found["message"]


def test_the_dashboard_is_exported_as_pages_that_stand_alone(shop, tmp_path):
    done = shop("dashboard", "--export", str(tmp_path / "site"))
    assert done.code == 0
    assert "bookshop" in (tmp_path / "site/index.html").read_text()
