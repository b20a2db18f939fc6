"""Edits of a generated server by a person, and changes of its API, as small scripts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcpfactory_codegen.servers.config import CONFIG
from tests.codegen.execution.documents import document

SERVER = "src/bookshop_mcp/server.py"
README, OWN_TESTS = "README.md", "tests/test_server.py"
INIT = "src/bookshop_mcp/__init__.py"
BOOKS = "src/bookshop_mcp/_generated/tools/books.py"
OWN_TOOL = '''

@server.tool
def shout(text: str) -> str:
    """Say it louder."""
    return text.upper()
'''


@dataclass(frozen=True)
class Person:
    """One edit. `kept`: texts that must remain in the files; `gone`: files that must not be created again."""

    edit: Callable[[Path], None]
    kept: dict[str, tuple[str, ...]]
    gone: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()


def _append(path: str, text: str) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        place = folder / path
        place.write_bytes(place.read_bytes() + text.encode())

    return edit


def _swap(path: str, old: str, new: str) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        text = (folder / path).read_bytes().decode()
        assert old in text, f"{path} has no {old!r}"
        (folder / path).write_bytes(text.replace(old, new, 1).encode())

    return edit


def _remove(path: str) -> Callable[[Path], None]:
    return lambda folder: (folder / path).unlink()


def _windows(folder: Path) -> None:
    place = folder / "README.md"
    place.write_bytes(place.read_bytes().replace(b"\n", b"\r\n") + b"Asked often: nothing.\r\n")


def _all(*edits: Callable[[Path], None]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        for one in edits:
            one(folder)

    return edit


def _new(folder: Path, path: str, text: str) -> None:
    (folder / path).write_text(text, "utf-8")


CURATION = '\n[tools.list_books] # ours\nrename = "find_books"\n'

HOOK = '''

@server.before("get_book")
def look(call: object) -> None:
    """Look at it."""
'''
DECIDED = """
[tools.list_books.arguments.limit] # ours
fix = 5

[tools.delete_orders]
title = "Start anew"
"""

PERSON: dict[str, Person] = {
    "nothing": Person(lambda _: None, {}),
    "a tool of one's own": Person(_append(SERVER, OWN_TOOL), {SERVER: (OWN_TOOL,)}),
    "a paragraph at the end": Person(_append("README.md", "\nAsk Ada.\n"), {"README.md": ("\nAsk Ada.\n",)}),
    "an edited row of the table": Person(
        _swap("README.md", "| `list_books` | List books. |", "| `list_books` | List ALL books |"),
        {"README.md": ("List ALL books",)},
    ),
    "another count of tools": Person(
        _swap("README.md", "4 tools, one per API operation", "a few tools, none per API operation"),
        {"README.md": ("a few tools, none per API operation",)},
    ),
    "a README with the line ends of Windows": Person(_windows, {"README.md": ("Asked often: nothing.\r\n",)}),
    "tests thrown away": Person(_remove("tests/test_server.py"), {}, gone=("tests/test_server.py",)),
    "a new version": Person(_swap(INIT, "0.1.0", "2.0.0"), {INIT: ('__version__ = "2.0.0"',)}),
    "a tool renamed": Person(
        _append("mcpfactory.toml", CURATION), {"mcpfactory.toml": (CURATION,)}, codes=("tool-renamed", "text-changed")
    ),
    "arguments fixed and a title chosen": Person(
        _append("mcpfactory.toml", DECIDED),
        {"mcpfactory.toml": (DECIDED,)},
        codes=("argument-removed", "text-changed"),
    ),
    "a tool hidden": Person(
        _append("mcpfactory.toml", "\n[tools.delete_orders]\nhide = true\n"),
        {"mcpfactory.toml": ("[tools.delete_orders]\nhide = true",)},
        codes=("tool-removed",),
    ),
    "a hook": Person(_append(SERVER, HOOK), {SERVER: (HOOK,)}),
    "other instructions": Person(
        _swap(SERVER, "Books to look up and to order.", "Ask before ordering."), {SERVER: ("Ask before ordering.",)}
    ),
    "an import at the top": Person(
        _swap(SERVER, "from pathlib import Path\n", "import os\nfrom pathlib import Path\n"), {SERVER: ("import os\n",)}
    ),
    "tests of one's own": Person(
        _append("tests/test_server.py", "\n\ndef test_mine() -> None: ...\n"),
        {"tests/test_server.py": ("def test_mine() -> None: ...",)},
    ),
    "a module and a dependency": Person(
        _all(
            lambda folder: _new(folder, "src/bookshop_mcp/mine.py", "X = 1\n"),
            _append("pyproject.toml", "# needs: nothing\n"),
        ),
        {"src/bookshop_mcp/mine.py": ("X = 1\n",), "pyproject.toml": ("# needs: nothing",)},
    ),
    "much at once": Person(
        _all(
            _append(SERVER, OWN_TOOL),
            _append("pyproject.toml", "\n[tool.mine]\nx = 1\n"),
            _remove("tests/test_server.py"),
            lambda folder: _new(folder, "NOTES.md", "mine\n"),
        ),
        {SERVER: (OWN_TOOL,), "pyproject.toml": ("\n[tool.mine]\nx = 1\n",), "NOTES.md": ("mine\n",)},
        gone=("tests/test_server.py",),
    ),
}


@dataclass(frozen=True)
class Api:
    """One edit of the document: the changed data, reported changes, affected person-owned files, file name."""

    edit: Callable[[dict[str, Any]], None]
    codes: tuple[str, ...] = ()
    follow: tuple[str, ...] = ()
    name: str = "openapi.json"

    def write(self, folder: Path) -> Path:
        """Write the new document to a file."""
        data = document()
        self.edit(data)
        place = folder / self.name
        comment = "# YAML\n" if place.suffix == ".yaml" else ""
        place.write_text(comment + json.dumps(data), "utf-8")  # JSON below a comment is YAML
        return place


def _added(data: dict[str, Any]) -> None:
    responses = {"200": {"description": "Readers."}}
    data["paths"]["/readers"] = {"get": {"operationId": "listReaders", "tags": ["Readers"], "responses": responses}}


def _removed(data: dict[str, Any]) -> None:
    del data["paths"]["/books/{bookId}"]


def _renamed(data: dict[str, Any]) -> None:
    data["paths"]["/books/{bookId}"]["get"]["operationId"] = "readBook"


def _stricter(data: dict[str, Any]) -> None:
    operation = data["paths"]["/books"]["get"]
    operation["parameters"][0]["schema"]["maximum"] = 10
    operation["parameters"].append({"name": "shop", "in": "query", "required": True, "schema": {"type": "string"}})


def _titled(data: dict[str, Any]) -> None:
    data["info"]["title"] = "Library API"
    data["paths"]["/books"]["get"]["summary"] = "Find books"


def _tagged(data: dict[str, Any]) -> None:
    for item in data["paths"].values():
        for method in item.keys() - {"servers"}:
            item[method]["tags"] = ["Everything"]


def _reordered(data: dict[str, Any]) -> None:
    data["paths"] = dict(reversed(data["paths"].items()))


def _described(data: dict[str, Any]) -> None:
    data["info"]["description"] = "All about books."
    data["paths"]["/orders"]["delete"]["description"] = "Gone for good."


def _moved(data: dict[str, Any]) -> None:
    data["servers"] = [{"url": "https://books.example/v2"}]


def _open(data: dict[str, Any]) -> None:
    data["security"] = []


def _typed(data: dict[str, Any]) -> None:
    data["paths"]["/books/{bookId}"]["get"]["parameters"][0]["schema"] = {"type": "string"}


API: dict[str, Api] = {
    "nothing": Api(lambda _: None),
    "an operation more": Api(_added, ("tool-added",), (README, OWN_TESTS)),
    "an operation less": Api(_removed, ("tool-removed",), (README, OWN_TESTS)),
    "another operationId": Api(_renamed),
    "stricter arguments": Api(_stricter, ("argument-added-required", "constraint-narrowed")),
    "other titles": Api(_titled, ("text-changed",), (README, "pyproject.toml", SERVER)),
    "other tags": Api(_tagged),
    "another order": Api(_reordered, follow=(README,)),
    "other descriptions": Api(_described, ("text-changed",), (README, SERVER)),
    "another address": Api(_moved, ("origin-changed",)),
    "no credentials": Api(_open, follow=(README,)),
    "another type": Api(_typed, ("type-changed",)),
    "another format": Api(lambda _: None, follow=(README, CONFIG), name="openapi.yaml"),
}

CONFLICTS: dict[tuple[str, str], tuple[str, ...]] = {
    ("an edited row of the table", "other titles"): ("README.md",),
    ("another count of tools", "an operation more"): ("README.md",),
    ("another count of tools", "an operation less"): ("README.md",),
    ("another count of tools", "another format"): ("README.md",),
    ("an edited row of the table", "another order"): ("README.md",),
    ("other instructions", "other titles"): (SERVER,),
    ("other instructions", "other descriptions"): (SERVER,),
    ("tests of one's own", "an operation more"): ("tests/test_server.py",),
    ("tests of one's own", "an operation less"): ("tests/test_server.py",),
}
"""Pairs in which both edits change the same lines; all other pairs merge without conflicts."""

UNSEEN: dict[tuple[str, str], str] = {
    ("arguments fixed and a title chosen", "stricter arguments"): "constraint-narrowed",
    ("a tool hidden", "other descriptions"): "text-changed",
}
"""Pairs in which one edit removes the effect of the other for callers."""

PAIRS = [
    (person, api)
    for number, (person, edit) in enumerate(PERSON.items())
    for api, news in API.items()
    if not number or api == "nothing" or {CONFIG, *news.follow} & {*edit.kept, *edit.gone}
]
"""Pairs that change the same file, or the configuration, which affects all files."""
