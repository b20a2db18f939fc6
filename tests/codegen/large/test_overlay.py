"""OpenAPI Overlays: what actions do to a document, and what is told when they cannot be done."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from mcpfactory_codegen.openapi import read_api
from mcpfactory_codegen.read.document import Document, DocumentError, load
from mcpfactory_codegen.read.overlay import apply_overlays, load_overlay
from tests.subtest_table import parametrize_subtests

DATA: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Shelf", "version": "1"},
    "tags": [{"name": "books"}],
    "paths": {
        "/books": {"get": {"operationId": "listBooks", "tags": ["books", "old"], "responses": {}}, "post": {"operationId": "addBook", "responses": {}}},
        "/pens": {"get": {"operationId": "listPens", "summary": "Pens", "x-traits": ["paged"], "responses": {}}},
    },
}  # fmt: skip


def overlaid(folder: Path, *actions: Any, data: Any = DATA, **fields: Any) -> Document:
    (folder / "api.json").write_text(json.dumps(data))
    overlay = {"overlay": "1.1.0", "info": {"title": "Mine", "version": "1"}, "actions": list(actions), **fields}
    (folder / "mine.yaml").write_text(yaml.safe_dump(overlay))
    return apply_overlays(load(folder / "api.json"), [load_overlay(folder / "mine.yaml")])


def codes(document: Document) -> list[tuple[str, str]]:
    return [(problem.code, problem.pointer) for problem in document.problems]


def changed(path: list[str | int], value: Any) -> Any:
    """The document with one value replaced; None takes it away."""
    data = copy.deepcopy(DATA)
    node: Any = data
    for step in path[:-1]:
        node = node[step]
    if value is None:
        del node[path[-1]]
    else:
        node[path[-1]] = value
    return data


GET = ["paths", "/books", "get"]


@parametrize_subtests("action, expected", [
        ({"target": "$.info", "update": {"title": "Books"}}, changed(["info", "title"], "Books")),
        ({"target": "$.info.title", "update": "Books"}, changed(["info", "title"], "Books")),
        ({"target": "$", "update": {"x-mcp": False}}, {**DATA, "x-mcp": False}),
        ({"target": "$.tags", "update": {"name": "pens"}}, changed(["tags"], [{"name": "books"}, {"name": "pens"}])),
        ({"target": "$.tags", "update": [{"name": "a"}]}, changed(["tags"], [{"name": "books"}, {"name": "a"}])),
        ({"target": "$.paths['/books'].get", "update": {"tags": ["new"]}}, changed([*GET, "tags"], ["books", "old", "new"])),
        ({"target": "$.paths['/books'].post", "remove": True}, changed(["paths", "/books", "post"], None)),
        ({"target": "$.paths.*.get.tags[?@ == 'old']", "remove": True}, changed([*GET, "tags"], ["books"])),
        ({"target": "$.paths['/books'].get.tags[*]", "remove": True}, changed([*GET, "tags"], [])),
        ({"target": "$.paths[?@.get['x-traits'][?@ == 'paged']].get", "update": {"summary": "x"}}, changed(["paths", "/pens", "get", "summary"], "x")),
        ({"target": "$.paths['/pens']", "copy": "$.info"}, changed(["paths", "/pens"], {**DATA["paths"]["/pens"], **DATA["info"]})),
        ({"target": "$.info", "remove": True, "update": {"title": "no"}}, changed(["info"], None)),
    ])  # fmt: skip
def test_an_action_does_what_the_specification_says(tmp_path: Path, action: Any, expected: Any) -> None:
    document = overlaid(tmp_path, action)
    assert document.data == expected
    assert document.problems == ()
    assert document.parts[document.main].data == expected
    assert json.loads(document.raw) == DATA


def test_actions_follow_each_other_and_overlays_too(tmp_path: Path) -> None:
    first = overlaid(
        tmp_path, {"target": "$.paths['/pens']", "remove": True}, {"target": "$.paths", "update": {"/pens": {}}}
    )
    assert first.data["paths"]["/pens"] == {}
    second = load_overlay(tmp_path / "mine.yaml", "second.yaml")
    again = apply_overlays(load(tmp_path / "api.json"), [second, second])
    assert again.data["paths"]["/pens"] == {}


@parametrize_subtests(
    "action, code, place",
    [
        ({"target": "$.paths['/nope']", "remove": True}, "overlay-unmatched", "/target"),
        ({"target": "$.paths['/nope']", "update": {}}, "overlay-unmatched", "/target"),
        ({"target": "$.paths[", "remove": True}, "overlay-invalid", "/target"),
        ({"target": "$", "remove": True}, "overlay-invalid", "/target"),
        ({"target": "$..*", "update": {}}, "overlay-invalid", "/target"),
        ({"target": "$.info"}, "overlay-invalid", ""),
        ({"target": "$.info", "update": {}, "copy": "$.tags"}, "overlay-invalid", ""),
        ({"target": "$.info", "copy": "$.paths.*"}, "overlay-invalid", "/copy"),
        ({"target": "$.info", "update": "text"}, "overlay-invalid", "/update"),
        ({"target": "$.info", "update": {"title": {}}}, "overlay-invalid", "/update"),
        ({"target": "$.paths.*.get", "update": {"summary": {}}}, "overlay-invalid", "/update"),
        ({"update": {}}, "overlay-invalid", ""),
        ("remove everything", "overlay-invalid", ""),
    ],
)
def test_what_cannot_be_done_is_told_with_its_place_and_changes_nothing(
    tmp_path: Path, action: Any, code: str, place: str
) -> None:
    document = overlaid(tmp_path, action, {"target": "$.info.version", "update": "2"})
    assert codes(document) == [(code, f"mine.yaml#/actions/0{place}")]
    assert document.data == changed(["info", "version"], "2")


@parametrize_subtests("content", [None, "[]", "{", '{"overlay": "1.0.0"}', "\0"])
def test_what_is_no_overlay_is_refused_with_its_name(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "mine.yaml"
    if content is not None:
        path.write_text(content)
    with pytest.raises(DocumentError, match=r"mine\.yaml") as refused:
        load_overlay(path)
    assert refused.value.hint


def test_what_an_overlay_says_about_reading_and_writing_counts(tmp_path: Path) -> None:
    body = {"content": {"application/json": {"schema": {"properties": {"id": {}, "title": {}}}}}}
    data = {**DATA, "paths": {"/books": {"post": {"requestBody": body, "responses": {}}}}}
    document = overlaid(tmp_path, {"target": "$..properties.id", "update": {"readOnly": True}}, data=data)
    (operation,) = read_api(document).operations
    assert operation.body is not None
    assert isinstance(operation.body.schema, dict)
    assert list(operation.body.schema["properties"]) == ["title"]
