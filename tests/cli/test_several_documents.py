from __future__ import annotations

import json

import pytest

from tests.cli.conftest import InProcessCli

STOCK = {
    "openapi": "3.1.0",
    "info": {"title": "Stock", "version": "1"},
    "servers": [{"url": "https://stock.example"}],
    "paths": {"/books": {"get": {"operationId": "listBooks", "responses": {"200": {"description": "Books."}}}}},
}


@pytest.fixture
def shop(tmp_path, workspace_cache, document):
    (tmp_path / "stock.json").write_text(json.dumps(STOCK), "utf-8")
    new = ("new", "shop", "--from-openapi", f"catalogue={document}", "--from-openapi", str(tmp_path / "stock.json"))
    return InProcessCli(workspace_cache.copy(tmp_path / "ws", ("--factory", "index"), new))


def test_several_documents_are_one_server_from_new_to_update(shop, tmp_path):
    shown = shop("inspect", "shop", "--json").data
    tools = {tool["name"]: tool["operation"]["document"] for tool in shown["tools"]}
    assert (tools["catalogue_list_books"], tools["stock_list_books"], len(tools)) == ("catalogue", "stock", 12)
    assert "stock: GET /books" in shop("inspect", "shop").out
    assert shop("inspect", "--json").data[0]["source"] == "api/catalogue/openapi.yaml, api/stock/openapi.json"

    place = tmp_path / "more.json"
    place.write_text(json.dumps({**STOCK, "paths": {"/pens": STOCK["paths"]["/books"]}}), "utf-8")
    told = shop("update", "shop", "--from-openapi", f"pens={place}", "--dry-run", "--json").data
    assert [(one["code"], one["tool"]) for one in told["changes"]] == [("tool-added", "pens_list_books")]
    assert (shop("update", "shop").out, shop("update", "shop", "--api", "stock").code) == ("shop is up to date\n", 0)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("update", "shop", "--api", "stok"), "did you mean 'stock'"),
        (("update", "shop", "--from-openapi", "stock.json"), "catalogue, stock"),
        (("new", "two", "--from-openapi", "a=x.json", "--from-openapi", "a=x.json"), "x.json does not exist"),
    ],
)
def test_what_is_not_plain_ends_with_a_hint(shop, command, said):
    done = shop(*command)
    assert done.code == 4
    assert said in done.err
