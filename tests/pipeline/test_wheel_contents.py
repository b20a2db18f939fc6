"""A wheel holds the package of its server, its metadata and its own scripts; anything else must be allowed by name."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.stages import STAGES
from mcpfactory_pipeline.state.store import Store
from tests.pipeline.build_backend import FILES, INFO, write_server


@pytest.fixture
def build_of(workspace, run):
    """Runs the stage `build` on a server whose wheel holds these files besides its own; gives the record of the stage."""

    def call(files: dict[str, str], allow: object = ()):
        write_server(workspace.root, files, allow=allow)
        run("books", stages=(replace(STAGES[1], needs=()),))
        return Store(workspace).state("books").stages["build"]

    return call


POINTS = f"{INFO}/entry_points.txt"
FOREIGN = [
    "evil.pth",
    "odd[1].pth",
    "sitecustomize.py",
    "mcpfactory_runtime/evil.py",
    "books_mcp/../evil.pth",
    "other-1.0.dist-info/METADATA",
    *(f"books-1.0.data/{part}/x" for part in ("scripts", "purelib", "platlib", "data")),
    "console_scripts:mcpfactory",
    "console_scripts:uv",
    "gui_scripts:bookshelf",
    "pytest11:books",
]


def holding(entries: list[str]) -> dict[str, str]:
    """The files of a wheel with these entries: paths, and entry points as `group:name`."""
    files = {entry: "" for entry in entries if ":" not in entry}
    points = [entry.split(":") for entry in entries if ":" in entry]
    return files | {POINTS: FILES[POINTS] + "".join(f"[{group}]\n{name} = os:abort\n" for group, name in points)}


def test_build_refuses_every_entry_that_is_not_the_servers_own(build_of):
    record = build_of(holding(FOREIGN))
    assert record.outcome == "failed"
    named = record.message.partition("how other packages run: ")[2].partition(";")[0]
    assert sorted(named.split(", ")) == sorted(FOREIGN)
    proposed = json.loads(record.message.partition(" allow = ")[2])
    assert "books-*.data/scripts/x" in proposed
    # Such a wheel cannot be installed, which is another reason to fail.
    assert "how other packages run" not in build_of(holding(FOREIGN), proposed).message


def test_build_accepts_own_entries_and_those_that_the_server_allows(build_of):
    record = build_of(holding(["shared/deep/a.py", "pytest11:books"]), ["shared/*", "pytest11:books"])
    assert record.outcome == "passed", record.message
    assert record.summary["allowed"] == ["pytest11:books", "shared/deep/a.py"]


def test_an_allowlist_that_is_not_a_list_of_texts_is_refused(workspace):
    write_server(workspace.root, {}, allow=1)
    with pytest.raises(ConfigError, match=r"build.allow: must be a list of strings"):
        workspace.server("books")
