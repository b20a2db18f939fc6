from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import names
from mcpfactory_codegen.text import digest
from tests.rows import rows

ROW = ("DELETE", "/buckets/{Bucket}", "DeleteBucketCors", "Deletes the rules")


@rows(
    "row, name, words",
    [
        (ROW, "delete_bucket_cors", []),
        (ROW, "delete_bucket", ["cors"]),
        (ROW, "delete_bucket_" + "x" * 46, []),  # there is no room for it
        (("GET", "/a", "getTheApplicationConfiguration", ""), "get_app_configs", []),
        (("GET", "/items/{item_id}", "read_item_items__item_id__get", ""), "read_item", []),
        (("GET", "/colors", "calendar.colors.get", ""), "calendar", ["colors"]),
        (("GET", "/b/{bookId}", "getBookBybookId", ""), "get_book", []),
        (("GET", "/x", "listReservedIPs", ""), "list_reserved_ips", []),
        (("GET", "/x", "listReservedIPs", ""), "list_reserved", ["i", "ps"]),
    ],
)
def test_a_word_is_lost_when_the_name_has_room_and_lacks_it(row: names.Row, name: str, words: list[str]) -> None:
    assert names.lost(row, name) == words


def test_digests_contradictions_and_names_that_are_alike_are_counted() -> None:
    rows = [
        ("POST", "/a", "", "Get a list of all books"),
        ("GET", "/b", "", "Deletes the book"),
        ("GET", "/c", "", ""),
        ("GET", "/d", "cafebabe", ""),
        ("POST", "/e", "", "Creates a book"),
        ("GET", "/f", "", ""),
    ]
    named = [
        "create_book",
        "get_books",
        f"get_{digest('GET /c')}",
        "cafebabe",
        "books_create",
        f"get_{digest('GET /f')}",
    ]
    keys = [f"{row[0]} {row[1]}" for row in rows]
    assert names.figures(rows, dict(zip(keys, named, strict=True))) == names.Figures(
        6, hash=2, verb=2, alike=4, long=12
    )


def test_documents_are_named_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = {"/x": {"get": {"operationId": "a" * 90}}, "/y": {"get": {"operationId": "readY"}}}
    (tmp_path / "long.json").write_text(json.dumps({"openapi": "3.1.0", "paths": paths}))
    assert (
        names.main(["--files", str(tmp_path / "long.json"), "--json", str(tmp_path / "out.json"), "--sample", "1"]) == 1
    )
    shown = capsys.readouterr().out
    assert "1 documents" in shown
    assert json.loads((tmp_path / "out.json").read_text())["long"]["GET /y"] == "read_y"
    assert names.main(["--only", "nothing-of-the-kind"]) == 3
