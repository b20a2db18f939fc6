"""Profiles, modes, overlays and suggestions: from `mcpfactory.toml` to the manifest and the report of a server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_codegen.describe.curate import BOUND
from mcpfactory_codegen.servers.config import ApiConfig, ServerConfig, ServerTable, read_config, render_config
from mcpfactory_codegen.servers.create import create_server, regenerate
from mcpfactory_codegen.servers.generation import GeneratedServer
from mcpfactory_codegen.servers.update import update_server
from mcpfactory_codegen.settings import CONFIG, SettingsError
from tests.codegen.execution.documents import document, written
from tests.codegen.execution.test_generated import call
from tests.codegen.server_checks import run
from tests.subtest_table import parametrize_subtests

REMOVE = {"overlay": "1.0.0", "info": {}, "actions": [{"target": "$.paths['/orders']", "remove": True}]}


def manifest(folder: Path) -> Any:
    return json.loads((folder / "src/bookshop_mcp/_generated/manifest.json").read_bytes())


def report(folder: Path) -> Any:
    return json.loads((folder / ".mcpfactory/report.json").read_bytes())


def append(folder: Path, text: str, below: str = "") -> None:
    """Write into mcpfactory.toml, at the end or below a line."""
    path = folder / CONFIG
    old = path.read_text()
    path.write_text(old.replace(f"{below}\n", f"{below}\n{text}\n", 1) if below else f"{old}\n{text}\n")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return create_server(tmp_path / "servers", source=written(tmp_path), name="bookshop").path


def test_what_is_decided_about_offering_is_written_and_read_again(tmp_path: Path) -> None:
    config = ServerConfig(
        server=ServerTable(
            name="shop", package="shop_mcp", template="openapi", mode="search", profile="read-only", dialect="flat"
        ),
        apis=(ApiConfig(document="api/a.yaml", include_methods=("GET",), overlays=("api/overlays/mine.yaml",)),),
    )  # fmt: skip
    (tmp_path / CONFIG).write_text(render_config(config), "utf-8")
    assert read_config(tmp_path) == config


@parametrize_subtests(
    "text",
    [
        '[server]\nname = "a"\npackage = "a"\nmode = "loud"',
        '[server]\nname = "a"\npackage = "a"\ndialect = "plane"',
        '[server]\nname = "a"\npackage = "a"\n[profiles]\nsupport = 1',
        '[server]\nname = "a"\npackage = "a"\n[profiles.full]\ninclude_tags = []',
        '[server]\nname = "a"\npackage = "a"\n[profiles."No good"]\ninclude_tags = []',
        '[server]\nname = "a"\npackage = "a"\n[profiles.support]\ninclude_tag = ["x"]',
        '[server]\nname = "a"\npackage = "a"\n[profiles.support]\ninclude_tags = "x"',
    ],
)
def test_a_profile_that_cannot_be_used_says_what_to_change(tmp_path: Path, text: str) -> None:
    (tmp_path / CONFIG).write_text(text)
    with pytest.raises(SettingsError) as raised:
        read_config(tmp_path)
    assert raised.value.hint


def test_profiles_are_in_the_manifest_by_names_and_in_the_report_by_numbers(shop: Path) -> None:
    assert "profiles" not in manifest(shop)
    append(shop, '[profiles.support]\ninclude_tags = ["Books"]\ninclude_methods = ["GET"]\n[profiles.curated]\ninclude_operations = ["addBook"]')  # fmt: skip
    append(shop, 'profile = "support"', 'package = "bookshop_mcp"')
    assert regenerate(shop).problems == ()
    made = manifest(shop)
    assert made["profile"] == "support"
    assert made["profiles"] == {"support": ["list_books", "get_book"], "curated": ["add_book"]}
    told = report(shop)["offer"]
    assert {name: one["tools"] for name, one in told["profiles"].items()} == {
        "full": 4, "read-only": 2, "support": 2, "curated": 1,
    }  # fmt: skip
    assert told["profiles"]["support"]["tokens"] < told["profiles"]["full"]["tokens"]


def test_without_a_decision_the_curated_profile_is_what_the_document_marks(tmp_path: Path) -> None:
    data = document()
    data["paths"]["/books"]["get"]["x-mcp"] = True
    made = create_server(tmp_path, source=written(tmp_path, data), name="bookshop")
    assert manifest(made.path)["profiles"] == {"curated": ["list_books"]}
    assert made.tools == 4


def test_a_server_in_search_mode_works_and_passes_its_own_tests(tmp_path: Path) -> None:
    made = create_server(tmp_path, source=written(tmp_path), name="bookshop", mode="search")
    assert manifest(made.path)["mode"] == "search"
    arguments = {"name": "list_books", "arguments": {"limit": 1, "author": ["value", "value1"]}}
    result, stub = asyncio.run(call(made.path, "bookshop_mcp", "call_tool", arguments))
    assert result["structuredContent"] == {"result": [{"title": "value", "limit": 1}]}, result
    assert [request.path for request in stub.requests] == ["/books"]
    done = run(made.path, "pytest", "-q", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout.splitlines()[-1]


def test_an_overlay_is_kept_beside_the_document_and_applied_each_time(tmp_path: Path) -> None:
    overlay = tmp_path / "No orders!.yaml"
    overlay.write_text(json.dumps(REMOVE))
    source = written(tmp_path)
    made = create_server(tmp_path / "servers", source=source, name="bookshop", overlays=[overlay, overlay])
    kept = ["api/overlays/no_orders.yaml", "api/overlays/no_orders-2.yaml"]
    assert read_config(made.path).apis[0].overlays == tuple(kept)
    assert [(problem.pointer, problem.line) for problem in made.problems] == [(f"{kept[1]}#/actions/0/target", 1)]
    for again in (made, regenerate(made.path), update_server(made.path, source=source)):
        assert again.tools == 3
    assert {path for path in kept if (made.path / path).is_file()} == set(kept)
    assert json.loads((made.path / "api/openapi.json").read_bytes()) == json.loads(source.read_bytes())


def large(tmp_path: Path, paths: dict[str, Any]) -> GeneratedServer:
    wordy = {"name": "q", "in": "query", "schema": {"type": "string"}, "description": "word " * 70}
    many = [{**wordy, "name": f"q{number}"} for number in range(10)]
    for item in paths.values():
        item["parameters"] = [*item.get("parameters", []), *many]
    return create_server(tmp_path, source=written(tmp_path, document(paths=paths)), name="bookshop", dry_run=True)


def operations(count: int, prefix: str, **fields: Any) -> dict[str, Any]:
    return {f"{prefix}{number}": {"get": {"responses": {}, **fields}} for number in range(count)}


def test_a_document_that_is_too_large_gets_groups_by_tag_with_what_to_type(tmp_path: Path) -> None:
    paths = operations(15, "/a", tags=["big one"]) | operations(10, "/b", tags=["small"])
    made = large(tmp_path, paths)
    assert made.tokens > BOUND
    assert [(group.name, group.tools, group.flag) for group in made.groups] == [
        ("big one", 15, "--include-tag 'big one'"), ("small", 10, "--include-tag small"),
    ]  # fmt: skip
    assert sum(group.tokens for group in made.groups) == made.tokens
