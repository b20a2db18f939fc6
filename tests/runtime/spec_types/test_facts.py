"""The tables of facts: whole, and made from a published file without losing what it demands."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_runtime.revisions import LATEST, REVISIONS, Revision
from tests.runtime import spec_types
from tests.runtime.spec_types import TABLES, definitions, faults, make
from tests.subtest_table import parametrize_subtests

PUBLISHED = {
    "definitions": {
        "Note": {
            "description": "What somebody wrote.",
            "type": "object",
            "required": ["text", "kind"],
            "additionalProperties": {},
            "properties": {
                "text": {"type": "string", "description": "The text.", "title": "Text"},
                "kind": {"const": "note", "type": "string"},
                "title": {"type": "string"},
                "code": {"const": -1, "type": "integer"},
                "id": {"type": ["string", "integer"]},
                "weight": {"type": "number", "minimum": 0, "maximum": 1},
                "count": {"type": "integer", "minimum": 0},
                "link": {"type": "string", "format": "uri"},
                "role": {"type": "string", "enum": ["user", "assistant"]},
                "parts": {"type": "array", "items": {"$ref": "#/definitions/Part"}, "maxItems": 2},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "meta": {"type": "object", "additionalProperties": True, "properties": {}},
                "anything": {},
            },
        },
        "Part": {"anyOf": [{"type": "null"}, {"allOf": [{"$ref": "#/definitions/Note"}, {"type": "object"}]}]},
    }
}
GOOD = {"text": "x", "kind": "note"}


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes the table of a revision from a document, in a folder of its own; the exit code."""
    monkeypatch.setattr(spec_types, "TABLES", tmp_path)
    monkeypatch.setattr(make, "TABLES", tmp_path)
    spec_types._validator.cache_clear()
    definitions.cache_clear()

    def run(document: Any, *options: str) -> int:
        (tmp_path / "schema.json").write_text(json.dumps(document))
        return make.main([LATEST.name, str(tmp_path / "schema.json"), *options])

    yield run
    spec_types._validator.cache_clear()
    definitions.cache_clear()


@parametrize_subtests("revision", REVISIONS.values())
def test_there_is_a_whole_table_for_every_revision(revision: Revision) -> None:
    file = TABLES / f"{revision.name}.json"
    assert file.is_file(), (
        f"run: python -m tests.runtime.spec_types.make {revision.name} SCHEMA, for tests/runtime/spec_types/{file.name}"
    )
    table = json.loads(file.read_text("utf-8"))
    assert table["revision"] == revision.name
    assert len(bytes.fromhex(table["sha256"])) == 32
    named = set(definitions(revision))
    text = json.dumps(definitions(revision))
    assert {part.partition('"')[0] for part in text.split("#/$defs/")[1:]} <= named
    assert len(named) > 75
    assert {"JSONRPCMessage", "ClientRequest", "Result", "Tool"} <= named


@pytest.mark.parametrize(
    ("change", "at"),
    [
        ({"text": 1}, "$.text"),
        ({"kind": "letter"}, "$.kind"),
        ({"code": 1}, "$.code"),
        ({"id": 1.5}, "$.id"),
        ({"weight": 2}, "$.weight"),
        ({"count": -1}, "$.count"),
        ({"role": "robot"}, "$.role"),
        ({"parts": [None] * 3}, "$.parts"),
        ({"parts": [1]}, "$.parts[0]"),
        ({"labels": {"a": 1}}, "$.labels.a"),
        ({"meta": []}, "$.meta"),
    ],
)
def test_a_table_demands_what_the_published_file_demands(made: Any, change: dict[str, Any], at: str) -> None:
    assert made(PUBLISHED) == 0
    whole = {**GOOD, "parts": [None, GOOD], "labels": {"a": "b"}, "id": 1, "weight": 0.5, "other": 1, "anything": []}
    assert faults(whole, "Note", LATEST) == []
    assert [fault.partition(":")[0] for fault in faults({**whole, **change}, "Note", LATEST)] == [at]
    for name in GOOD:
        assert faults({key: value for key, value in GOOD.items() if key != name}, "Note", LATEST)


def test_a_table_has_the_hash_of_its_source_and_no_prose(made: Any, tmp_path: Path) -> None:
    assert made(PUBLISHED) == 0
    text = (tmp_path / f"{LATEST.name}.json").read_text()
    assert "somebody" not in text
    assert json.loads(text)["sha256"] == hashlib.sha256((tmp_path / "schema.json").read_bytes()).hexdigest()
    assert made(PUBLISHED, "--check") == 0
    assert made({"definitions": {"Note": {"type": "object"}}}, "--check") == 1
