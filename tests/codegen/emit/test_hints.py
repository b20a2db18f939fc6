"""What a tool promises follows from its method, and from what its document says of it."""

from __future__ import annotations

import pytest

from mcpfactory_codegen.describe.tools import hints_of
from mcpfactory_codegen.ir import ApiOperation


@pytest.mark.parametrize(
    ("method", "name", "summary", "expected"),
    [
        ("GET", "listBooks", "List books", (True, None, False)),
        ("GET", "getDeleted", "Deleted books", (True, None, False)),
        ("GET", "removeBook", "", (False, True, True)),
        ("GET", "", "Deletes a book.", (False, True, True)),
        ("GET", "list-deletes", "Deletes of a book", (True, None, False)),
        ("GET", "sendMail", "Send mail", (False, False, True)),
        ("POST", "searchBooks", "Search books", (True, None, False)),
        ("POST", "books/search", "Find books by what they say", (True, None, False)),
        ("POST", "searchAndCreate", "Search, or create", (False, False, False)),
        ("POST", "addBook", "Add a book", (False, False, False)),
        ("POST", "bulk", "Delete many books", (False, True, False)),
        ("PATCH", "revokeKey", "Revoke a key", (False, True, False)),
        ("DELETE", "drop", "", (False, True, False)),
        ("PUT", "setBook", "", (False, False, False)),
    ],
)
def test_hints_follow_from_method_and_words(
    method: str, name: str, summary: str, expected: tuple[bool, bool | None, bool]
) -> None:
    hints, problem = hints_of(ApiOperation(method, "/books", "", operation_id=name, summary=summary))
    assert (hints["readOnlyHint"], hints.get("destructiveHint"), problem is not None) == expected
