"""What the channels' folders on this machine serve, against the states: replaced, missing, added, and nobody's."""

from __future__ import annotations

import json
import shutil

import pytest

from mcpfactory_pipeline.decisions.integrity import channel_folder_faults, name_clashes, unreferenced_pages
from mcpfactory_pipeline.decisions.restore import restore
from mcpfactory_pipeline.run.run import plan_servers
from mcpfactory_pipeline.views.inbox import read_inbox
from mcpfactory_pipeline.views.status import status
from tests.pipeline.fake_stages import STAGES, add_server


def wheel_of(books):
    return next((books.workspace.pipeline / "channels/staging/files").glob("*/books-*.whl"))


def replaced(books):
    wheel_of(books).write_bytes(b"other")


def missing(books):
    wheel_of(books).unlink()


def linked(books):
    wheel = wheel_of(books)
    wheel.rename(books.workspace.root / "elsewhere.whl")
    wheel.symlink_to(books.workspace.root / "elsewhere.whl")


def newer(books):
    page = books.workspace.pipeline / "channels/staging/simple/books/index.html"
    line = next(line for line in page.read_text().splitlines() if ".whl" in line)
    page.write_text(page.read_text().replace(line, f"{line}\n{line.replace('1.0', '99.0')}"))


def unnamed(books):
    (books.workspace.pipeline / "channels/staging/simple/books/index.html").unlink()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (replaced, "has other bytes"),
        (missing, "is missing"),
        (linked, "is a link"),
        (newer, "names books-99.0-py3"),
        (unnamed, "there is no page of books"),
    ],
)
def test_what_is_served_and_was_not_promoted_is_found_and_restored(books, spoil, words):
    assert channel_folder_faults(books.workspace) == []
    spoil(books)
    (fault,) = channel_folder_faults(books.workspace)
    assert fault["server"] == "books"
    assert words in "; ".join(fault["changes"])
    drift = [entry for entry in status(books.workspace)[0]["drift"] if entry["kind"] == "channel"]
    assert words in drift[0]["message"]
    restore(books.workspace)
    assert channel_folder_faults(books.workspace) == []
    assert not wheel_of(books).is_symlink()


def test_a_page_that_no_state_names_is_told_and_withdrawn(books):
    simple = books.workspace.pipeline / "channels/staging/simple"
    shutil.copytree(simple / "books", simple / "ghost")
    assert [fault["server"] for fault in channel_folder_faults(books.workspace)] == ["ghost"]
    assert ("drift", "ghost", "gone") in [
        (item.kind, item.server, item.about) for item in read_inbox(books.workspace, stages=STAGES)
    ]
    withdrawn = [(one.server, one.channel) for one in restore(books.workspace) if one.outcome == "withdrawn"]
    assert withdrawn == [("ghost", "staging")]
    assert unreferenced_pages(books.workspace) == []


@pytest.mark.parametrize("history", ["kept", "missing"])
def test_a_state_that_was_edited_by_hand_is_shown_as_nothing_but_a_problem(books, history):
    assert "problem" not in status(books.workspace)[0]
    file = books.workspace.pipeline / "state/books.json"
    state = json.loads(file.read_text())
    state["channels"]["production"] = state["channels"]["staging"]
    file.write_text(json.dumps(state, indent=2, sort_keys=True) + "\n")
    if history == "missing":
        (books.workspace.pipeline / "history/books.jsonl").unlink()
    (row,) = status(books.workspace)
    assert row["channels"] == {}
    assert row["problem"]["hint"]
    (item,) = read_inbox(books.workspace, stages=STAGES)
    assert item.kind == "problem"
    assert [step.verdict for step in plan_servers(books.workspace, stages=STAGES)] == ["broken"]


def test_two_servers_with_one_distribution_name_are_said_by_the_plan(books):
    for name, project in (("books", "Books"), ("others", "bOOKS"), ("third", "mcpfactory_runtime")):
        folder = books.folder if name == "books" else add_server(books.workspace.root, name)
        (folder / "pyproject.toml").write_text(f'[project]\nname = "{project}"\n')
    clashes = name_clashes(books.workspace, ["books", "others", "third"])
    assert list(clashes) == ["others", "third"]  # books was built under the name first
    told = {step.server: step.reasons[0] for step in plan_servers(books.workspace, stages=STAGES) if not step.stage}
    assert told == {
        "others": "others cannot use the distribution name books: the name belongs to books",
        "third": "third cannot use the distribution name mcpfactory-runtime: the name belongs to the runtime",
    }
