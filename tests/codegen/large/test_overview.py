"""The overview of a server: from its report to one screen, and what a model will find hard of its tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mcpfactory_codegen.servers.create import create_server
from mcpfactory_codegen.servers.overview import overview, overview_lines
from tests.codegen.execution.documents import document, written
from tests.subtest_table import parametrize_subtests


def tool(name: str, **facts: Any) -> dict[str, Any]:
    operation = {"method": "GET", "path": f"/{name}", "operationId": name}
    return {"name": name, "operation": operation, "arguments": {}, "tokens": 100, "effect": "reads", **facts}


def some(count: int, name: str, **facts: Any) -> list[dict[str, Any]]:
    return [tool(f"{name}_{number}", **facts) for number in range(count)]


LARGE: dict[str, Any] = {
    "tools": [
        *some(1100, "list"),
        *some(90, "delete", effect="destroys", tokens=2_500),
        *some(30, "update", effect="writes", arguments={f"a{number}": {} for number in range(31)}),
        *some(2, "send", effect="writes", hard=["undescribed", "free-form"]),
        tool("create_item_9c0cd79d", effect="writes", hard=["nested"]),
    ],
    "skipped": [
        {"method": "GET", "path": f"/x{number}", "reason": "excluded by its tag" if number else "x" * 90} for number in range(12)
    ],
    "environment": [
        {"name": "HUB_BASE_URL", "required": False, "secret": False},
        {"name": "HUB_TOKEN", "required": True, "secret": True},
        {"name": "HUB_UPLOADS_BASE_URL", "required": False, "secret": False},
    ],
    "credentials": {"schemes": [{"name": "token", "variables": ["HUB_TOKEN"], "flows": []}]},
    "address": {
        "base_url": "https://api.hub.example", "prefix": "HUB", "allow_private": [],
        "servers": [{"name": "uploads", "url": "https://uploads.hub.example", "variable": "HUB_UPLOADS_BASE_URL", "tools": 3}],
    },
    "groups": [{"name": "repos", "tools": 600, "tokens": 60_000, "flag": "--include-tag repos"}],
    "offer": {"mode": "full", "profile": "full", "profiles": {"full": {"tools": 1223, "tokens": 339_000}}},
    "problems": [],
}  # fmt: skip

SCREEN = """\
tools        1,223 from 1,235 operations: 1,100 read, 33 write, 90 destroy
costs        338,300 tokens in tools/list
left out     11 (excluded by its tag), 1 (xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
credentials  HUB_TOKEN
address      https://api.hub.example (HUB_BASE_URL) and 1 more
difficult for models
  90 tools cost more than 2,000 tokens each: delete_0 2,500
  30 tools take more than 15 arguments: update_0 has 31
  2 tools have no description, such as send_0
  2 tools take values without a description, such as send_0
  1 tool differs only by a hash: create_item_9c0cd79d
suggestions
  1. let models search the tools instead of reading 339,000 tokens
     mode = "search"   # below [server]; or new with --include-tag repos
  2. set credentials: HUB_TOKEN
     export HUB_TOKEN=…
  3. offer only read-only tools: 90 tools can destroy, such as delete_0
     profile = "read-only"   # below [server]
after you edit servers/hub/mcpfactory.toml: mcpfactory update hub
"""


def test_a_large_server_fits_one_screen() -> None:
    lines = overview_lines(overview("hub", LARGE))
    assert lines == SCREEN.splitlines()
    assert len(lines) <= 20
    assert max(map(len, lines)) <= 80


SMALL: dict[str, Any] = {
    "tools": [tool("get_book")],
    "environment": [],
    "credentials": {"schemes": [{"name": "key", "variables": ["SHOP_KEY"], "flows": []}]},
    "address": {"base_url": "https://shop.example", "prefix": "SHOP", "allow_private": [], "servers": []},
}
LOGIN = {"schemes": [{"name": "oauth", "variables": ["SHOP_ID"], "flows": [{}]}]}
AT_HOME = {**SMALL["address"], "base_url": "http://127.0.0.1:8000/v1"}
NOWHERE = [{"name": "SHOP_BASE_URL", "required": True, "secret": False}]
CHEAP = {"mode": "search", "profile": "full", "profiles": {"full": {"tokens": 30_000}}}
LOST = [{"code": "operation-no-tool"}]


@parametrize_subtests("changes, code, line", [
        ({"environment": NOWHERE}, "address", "export SHOP_BASE_URL=https://…"),
        ({"address": AT_HOME}, "private-address", 'allow_private = ["127.0.0.1:8000"]   # below [api]'),
        ({"address": {**AT_HOME, "allow_private": ["127.0.0.1"]}}, "credentials", "export SHOP_KEY=…"),
        ({"tools": [tool("a", tokens=30_000)]}, "tokens", 'mode = "search"   # below [server]'),
        ({"tools": [tool("a", tokens=30_000)], "offer": CHEAP}, "credentials", "export SHOP_KEY=…"),
        ({"credentials": LOGIN}, "credentials", "mcpfactory login shop"),
        ({"credentials": {}, "problems": LOST}, "left-out", "mcpfactory inspect shop"),
        ({"credentials": {}, "tools": [tool("a", effect="destroys")]}, "read-only", 'profile = "read-only"   # below [server]'),
    ])  # fmt: skip
def test_what_is_worth_deciding_comes_with_what_to_type(changes: dict[str, Any], code: str, line: str) -> None:
    first = overview("shop", {**SMALL, **changes}).decisions[0]
    assert (first.code, first.type) == (code, line)


def test_what_is_hard_is_measured_of_the_document(tmp_path: Path) -> None:
    inner = {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}
    outer = {"type": "object", "required": ["address"], "properties": {"address": inner}}
    order = {"type": "object", "required": ["buyer"], "properties": {"buyer": outer}}
    free = {
        "type": "object",
        "properties": {"filter": {}, "query": {"type": "object"}, "map": {"additionalProperties": True}},
    }
    bodies = {
        "/orders": ("Order", order),
        "/search": ("Search", free),
        "/plain": ("", {"type": "object", "properties": {"a": {"type": "string"}}}),
    }
    paths = {
        path: {
            "post": {
                "summary": summary,
                "responses": {},
                "requestBody": {"content": {"application/json": {"schema": schema}}, "required": True},
            }
        }
        for path, (summary, schema) in bodies.items()
    }
    view = create_server(tmp_path, source=written(tmp_path, document(paths=paths)), name="shop", dry_run=True).overview
    assert view is not None
    assert {one.code: one.tools for one in view.hard} == {"nested": 1, "free-form": 1, "undescribed": 1}
