"""What the channels' folders on this machine serve, against the states: replaced, missing, added, and nobody's."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace

import pytest

from mcpfactory_pipeline.promotion import decision
from mcpfactory_pipeline.promotion.names import name_clashes
from mcpfactory_pipeline.promotion.offers import ghost_pages, served_faults
from mcpfactory_pipeline.promotion.promote import promote
from mcpfactory_pipeline.promotion.restore import restore
from mcpfactory_pipeline.run.run import plan_servers
from mcpfactory_pipeline.views.inbox import read_inbox
from mcpfactory_pipeline.views.status import status
from tests.pipeline.cheap import BUILD, SHIP, STAGES, TEST, add_server
from tests.pipeline.space import refused


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
    assert served_faults(books.workspace) == []
    spoil(books)
    (fault,) = served_faults(books.workspace)
    assert fault["server"] == "books"
    assert words in "; ".join(fault["changes"])
    drift = [entry for entry in status(books.workspace)[0]["drift"] if entry["kind"] == "channel"]
    assert words in drift[0]["message"]
    restore(books.workspace)
    assert served_faults(books.workspace) == []
    assert not wheel_of(books).is_symlink()


def test_a_clone_that_has_nothing_of_a_server_in_its_channels_is_not_accused(books):
    unnamed(books)
    wheel_of(books).unlink()
    assert served_faults(books.workspace) == []


RUNTIME_PAGES = {
    "no hash": (lambda page: re.sub("#sha256=[0-9a-f]+", "", page), "without its hash"),
    "elsewhere": (lambda page: page.replace("../../files/", "https://example.org/"), "or elsewhere"),
    "another link": (
        lambda page: page.replace("</body>", "<a href='x.whl'>x.whl</a></body>"),
        "not one that a channel",
    ),
}


@pytest.mark.parametrize("what", RUNTIME_PAGES)
def test_a_page_of_the_runtime_that_no_channel_writes_is_found(books, what):
    change, words = RUNTIME_PAGES[what]
    page = books.workspace.pipeline / "channels/staging/simple/mcpfactory-runtime/index.html"
    page.write_text(change(page.read_text()))
    (fault,) = served_faults(books.workspace)
    assert words in fault["changes"][0]


def test_a_page_that_no_state_names_is_told_and_withdrawn(books):
    simple = books.workspace.pipeline / "channels/staging/simple"
    shutil.copytree(simple / "books", simple / "ghost")
    assert [fault["server"] for fault in served_faults(books.workspace)] == ["ghost"]
    assert ("drift", "ghost", "gone") in [
        (item.kind, item.server, item.about) for item in read_inbox(books.workspace, stages=STAGES)
    ]
    withdrawn = [(one.server, one.channel) for one in restore(books.workspace) if one.outcome == "withdrawn"]
    assert withdrawn == [("ghost", "staging")]
    assert ghost_pages(books.workspace) == []


def test_a_server_whose_folder_is_gone_is_told_and_can_be_retired(books):
    shutil.rmtree(books.folder)
    (fault,) = served_faults(books.workspace)
    assert "servers/books is gone" in fault["message"]
    books.decide("retire", reason="its folder is gone")
    assert served_faults(books.workspace) == []


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


def test_a_rejected_candidate_is_not_offered_for_promotion(books):
    books.decide("approve")
    books.promote()
    books.next("two")
    books.decide("reject", reason="no")
    assert [item.command for item in read_inbox(books.workspace, stages=STAGES)] == []


def test_a_changed_api_document_makes_the_candidate_due(books):
    stages = (replace(TEST, name="generate", reads=("document",), needs=(), check=False), BUILD, TEST, SHIP)
    (books.folder / "mcpfactory.toml").write_text(
        '[server]\nname = "books"\npackage = "p"\ntemplate = "none"\n[api]\ndocument = "api/openapi.json"\n'
    )
    (books.folder / "api").mkdir()
    (books.folder / "api/openapi.json").write_text("{}")
    books.run("books", stages=stages)
    decision.approve(books.workspace, "books", "production", stages=stages)
    (books.folder / "api/openapi.json").write_text("[]")
    assert "ready" not in [item.kind for item in read_inbox(books.workspace, stages=stages)]
    with refused("generate is due: the API document has changed since"):
        promote(books.workspace, "books", "production", stages=stages)


def test_two_servers_with_one_distribution_name_are_said_by_the_plan(books):
    for name, project in (("books", "Books"), ("others", "bOOKS"), ("third", "mcpfactory_runtime")):
        folder = books.folder if name == "books" else add_server(books.workspace.root, name)
        (folder / "pyproject.toml").write_text(f'[project]\nname = "{project}"\n')
    clashes = name_clashes(books.workspace, ["books", "others", "third"])
    assert list(clashes) == ["others", "third"]  # books was built under the name first
    told = {step.server: step.reasons[0] for step in plan_servers(books.workspace, stages=STAGES) if not step.stage}
    assert told == {
        "others": "others has the distribution name of books, books",
        "third": "third has the distribution name of the runtime, mcpfactory-runtime",
    }
