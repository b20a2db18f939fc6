"""Channels come back in a fresh clone: from the artifacts, or built again; else it is said which wheel is missing."""

from __future__ import annotations

import shutil

import pytest

from mcpfactory_pipeline.decisions import decision
from mcpfactory_pipeline.decisions.promote import promote
from mcpfactory_pipeline.decisions.restore import restore
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.views.status import status
from tests.pipeline.fake_stages import STAGES, add_server
from tests.pipeline.staged_workspace import offered


@pytest.fixture
def promoted(workspace, run):
    """A server whose first candidate is in production, and its second in staging; gives their ids."""
    folder = add_server(workspace.root, "books")
    run("books")
    first = Store(workspace).state("books").candidate
    decision.approve(workspace, "books", "production", stages=STAGES)
    promote(workspace, "books", "production", stages=STAGES)
    (folder / "source.txt").write_text("two")
    run("books")
    return first, Store(workspace).state("books").candidate


def outcomes(found) -> list[tuple[str, str]]:
    return [(entry.channel, entry.outcome) for entry in found]


def test_folders_that_are_as_the_state_says_are_left_alone(workspace, promoted):
    assert outcomes(restore(workspace)) == [("production", "there"), ("staging", "there")]


def test_lost_folders_come_back_from_the_artifacts(workspace, promoted):
    channels = workspace.pipeline / "channels"
    shutil.rmtree(channels)
    assert outcomes(restore(workspace, ["books"])) == [("production", "restored"), ("staging", "restored")]
    assert offered(workspace, "production") == [b"one"]
    assert offered(workspace, "staging") == [b"two"]


def test_a_folder_that_offers_something_else_is_corrected(workspace, promoted):
    page = workspace.pipeline / "channels/production/simple/books/index.html"
    shutil.copy(workspace.pipeline / "channels/staging/simple/books/index.html", page)
    assert [entry["kind"] for entry in status(workspace)[0]["drift"]] == ["behind", "channel"]
    assert outcomes(restore(workspace)) == [("production", "restored"), ("staging", "there")]
    assert offered(workspace, "production") == [b"one"]
    assert [entry["kind"] for entry in status(workspace)[0]["drift"]] == ["behind"]


def test_a_wheel_that_is_nowhere_is_named_with_what_to_do_and_the_others_come_back(workspace, promoted):
    first, _ = promoted
    shutil.rmtree(workspace.pipeline / "channels")
    shutil.rmtree(workspace.artifacts / "books" / first)
    production, staging = restore(workspace)
    assert (production.outcome, staging.outcome) == ("missing", "restored")
    assert "books-1.0-py3-none-any.whl is not on this machine" in production.source
    assert f"copy pipeline/artifacts/books/{first}/" in production.hint
    assert not (workspace.pipeline / "channels/production/simple/books").exists()


PACKAGE = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "books"
version = "1.0"
[tool.hatch.build.targets.wheel]
only-include = ["source.txt"]
"""


def test_a_wheel_that_is_built_again_with_other_bytes_is_not_taken(workspace, run):
    folder = add_server(workspace.root, "books")
    (folder / "pyproject.toml").write_text(PACKAGE)  # what is built from it is not what the cheap stage built
    run("books")
    shutil.rmtree(workspace.pipeline / "channels")
    shutil.rmtree(workspace.artifacts / "books")
    (found,) = restore(workspace)
    assert found.outcome == "missing"
    assert "the new build of books-1.0-py3-none-any.whl from servers/books has different bytes" in found.source
    assert "copy pipeline/artifacts/books/" in found.hint
    assert not (workspace.artifacts / "books" / found.candidate).exists()
    assert not (workspace.pipeline / "channels/staging/simple/books").exists()
