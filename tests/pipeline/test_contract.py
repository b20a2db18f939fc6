"""The contract with callers: what a newer tool list breaks, which version says so, and the gate that minds it."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_pipeline.base.errors import NotFoundError, PromotionError, StateError
from mcpfactory_pipeline.base.versions import is_sufficient_step, next_version, version_step
from mcpfactory_pipeline.channels.contract import (
    BreakingChanges,
    Contract,
    breaking_changes_by_candidate,
    compare_contracts,
    contract_to_text,
    find_contract,
)
from mcpfactory_pipeline.decisions.precondition import breaking_changes_line
from mcpfactory_pipeline.plan.gates import closed_gates
from mcpfactory_pipeline.state.state import Candidate, Release, ServerState
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.views.inbox import read_inbox
from tests.pipeline.fake_stages import STAGES
from tests.subtest_table import parametrize_subtests

SEARCH: dict[str, Any] = {
    "name": "search",
    "description": "Search books.",
    "inputSchema": {"type": "object", "properties": {"query": {"type": "string"}}},
}
COUNT: dict[str, Any] = {"name": "count", "description": "Count books.", "inputSchema": {"type": "object"}}
NEEDY = {**SEARCH, "inputSchema": {**SEARCH["inputSchema"], "required": ["query"]}}
TOLD = {**SEARCH, "description": "Search books by title."}


@parametrize_subtests(
    "before, after, version, found",
    [
        ([SEARCH], [SEARCH], "1.2.3", ("none", True, "1.2.3")),
        ([SEARCH], [TOLD], "1.2.3", ("patch", True, "1.2.4")),
        ([SEARCH], [SEARCH, COUNT], "1.2.4", ("minor", True, "1.3.0")),
        ([SEARCH, COUNT], [SEARCH], "1.3.0", ("major", False, "2.0.0")),
        ([SEARCH], [NEEDY], "1.3.0", ("major", False, "2.0.0")),
        ([SEARCH], [NEEDY], "2.0.0", ("major", True, "2.0.0")),
        ([SEARCH], [NEEDY], "2.1.0", ("major", True, "2.1.0")),
    ],
)
def test_changes_ask_for_a_step_and_only_a_major_one_may_break(before, after, version, found) -> None:
    made = compare_contracts(Contract(tuple(before), "1.2.3"), Contract(tuple(after), version))
    assert (made.needed, made.kept, made.proposed) == found


@parametrize_subtests(
    "before, after, step, may_break",
    [
        ("1.0.0", "1.0.1", "patch", False),
        ("1.0.0", "1.1.0", "minor", False),
        ("1.9.9", "2.0.0", "major", True),
        ("2.0.0", "1.9.9", "none", False),
        ("1.0.0", "1.0.0rc1", "none", False),
        ("0.1.0", "0.1.1", "patch", False),
        ("0.1.9", "0.2.0", "minor", True),
        ("0.9", "1.0", "major", True),
        ("nonsense", "1", "major", True),
    ],
)
def test_below_one_a_minor_step_may_break(before, after, step, may_break) -> None:
    assert version_step(before, after) == step
    assert is_sufficient_step(before, after, "major") is may_break


@parametrize_subtests("version, needed", product(["0.0.0", "0.3.7", "1.0.0", "12.4.9"], ["patch", "minor", "major"]))
def test_the_version_that_is_proposed_is_large_enough_and_no_larger(version, needed) -> None:
    proposed = next_version(version, needed)
    assert is_sufficient_step(version, proposed, needed)
    assert version_step(version, proposed) in {"patch", "minor", "major"}
    if needed == "patch":
        assert version_step(version, proposed) == "patch"


def keep(folder: Path, candidate: str, *tools: Any) -> Path:
    place = folder / candidate / "validate"
    place.mkdir(parents=True)
    (place / "tools.json").write_text(contract_to_text(tools))
    return folder


def test_a_candidate_is_compared_with_all_whose_lists_are_here(tmp_path) -> None:
    keep(keep(keep(tmp_path, "one", SEARCH), "two", SEARCH, COUNT), "three", SEARCH)
    (tmp_path / "logs").mkdir()
    (keep(tmp_path, "torn") / "torn/validate/tools.json").write_text("{")
    assert breaking_changes_by_candidate([SEARCH], tmp_path, "three") == {"one": 0, "three": 0, "two": 1}


def candidate(version: str, **contract: int) -> Candidate:
    return Candidate(version, 2, {}, checks={"validate": {"outcome": "passed", "summary": {"contract": contract}}})


OFFERED = Release("old", "1.2.0")


@parametrize_subtests(
    "known, offered, words",
    [
        (candidate("1.3.0", old=0), OFFERED, None),
        (candidate("2.0.0", old=3), OFFERED, None),
        (candidate("1.3.0"), None, None),
        (
            candidate("1.3.0", old=3),
            OFFERED,
            "3 changes break callers of 1.2.0, which requires version 2.0.0, not 1.3.0",
        ),
        (candidate("1.3.0", other=0), OFFERED, "contract cannot be checked"),
        (replace(candidate("1.3.0"), checks={}), OFFERED, "contract cannot be checked"),
    ],
)
def test_the_gate_opens_for_what_breaks_nobody_or_says_so(known, offered, words) -> None:
    found = closed_gates({"contract": True}, known, offered)
    assert (words is None and found == {}) or (words is not None and words in found["contract"])


@parametrize_subtests(
    "found, offered, words",
    [
        (BreakingChanges(), OFFERED, ""),
        (BreakingChanges(), None, ""),
        (
            BreakingChanges(1, ("count is gone",)),
            OFFERED,
            "1 change breaks callers of 1.2.0, which production offers: count is",
        ),
        (BreakingChanges(3), OFFERED, "3 changes break callers of 1.2.0, which production offers: mcpfactory diff"),
        (BreakingChanges(None), OFFERED, "its changes for callers of 1.2.0 in production are unknown"),
    ],
)
def test_who_decides_is_told_what_breaks_callers_although_the_version_says_so(found, offered, words) -> None:
    told = breaking_changes_line(found, offered, "production", "books")
    assert (words in told) is True
    assert bool(words) is bool(told)


PRODUCTION = '[[pipeline.channels]]\nname = "production"\nfrom = "staging"\n'


def test_a_later_channel_refuses_a_known_broken_contract_by_default(books) -> None:
    """Promotion compares with the current offer of the channel, and a first offer with nothing."""
    books.configure(PRODUCTION)
    folder = books.workspace.artifacts / "books"
    keep(folder, books.state.candidate, SEARCH, COUNT)
    books.promote()
    keep(folder, books.next("two"), SEARCH)
    with pytest.raises(
        PromotionError, match=r"1 change breaks callers of 1\.0, which requires version 2\.0\.0.*count"
    ) as caught:
        books.promote()
    assert caught.value.hint == "mcpfactory diff books --against production"
    (item,) = read_inbox(books.workspace, stages=STAGES)
    assert (item.kind, item.command) == ("gate", caught.value.hint)
    books.configure(PRODUCTION + "gates = { contract = false }\n")
    assert "count" in books.promote()["callers"]
    books.configure(PRODUCTION)
    keep(folder, books.next("three"), SEARCH)
    books.promote()


def test_an_approval_must_name_the_changes_that_break_callers_of_the_current_offer(books) -> None:
    books.configure(PRODUCTION + "approvals = 1\n")
    folder = books.workspace.artifacts / "books"
    keep(folder, books.state.candidate, SEARCH)
    books.decide("approve")
    books.promote()
    between, last = books.next("2.0"), books.next("3.0")
    keep(folder, between, SEARCH, COUNT)
    keep(folder, last, SEARCH)
    books.decide("approve", candidate=last)
    books.decide("approve", candidate=between)
    books.promote(candidate=between)
    with pytest.raises(
        PromotionError, match=r"no approval names the changes that break callers of 2\.0: count"
    ) as caught:
        books.promote(candidate=last)
    assert caught.value.hint == f"mcpfactory pipeline approve books --channel production --candidate {last}"
    assert "count" in books.decide("approve", candidate=last)["proof"][0]
    books.promote(candidate=last)
    made = [event.get("breaking") for event in Store(books.workspace).history("books") if event["event"] == "approved"]
    assert made == [None, None, None, ["count is gone"]]


def test_a_closed_contract_stops_a_promotion(books) -> None:
    books.configure('[[pipeline.channels]]\nname = "production"\nfrom = "staging"\ngates = { contract = true }\n')
    books.promote()  # production offered nothing, so nobody had a contract
    books.next("two")
    with pytest.raises(PromotionError, match="contract cannot be checked") as caught:
        books.promote()
    assert caught.value.hint == "mcpfactory diff books --against production"


def test_a_contract_is_that_of_a_channel_a_candidate_or_a_file(books, tmp_path) -> None:
    state, folder = books.state, books.workspace.artifacts / "books"
    made = state.candidate
    keep(folder, made, SEARCH)
    (tmp_path / "list.json").write_text(json.dumps({"tools": [COUNT], "version": "3.1"}))
    assert find_contract(books.workspace, state).source.startswith("staging (")
    assert find_contract(books.workspace, state, made[:6]).tools == (SEARCH,)
    found = find_contract(books.workspace, state, str(tmp_path / "list.json"))
    assert (found.tools, found.version) == ((COUNT,), "3.1")
    with pytest.raises(NotFoundError, match="'nowhere' is neither a channel that offers books"):
        find_contract(books.workspace, state, "nowhere")
    with pytest.raises(NotFoundError, match="has no contract yet"):
        find_contract(books.workspace, ServerState("books"))
    (tmp_path / "list.json").write_text("[1]")
    with pytest.raises(StateError, match="is not a tool list"):
        find_contract(books.workspace, state, str(tmp_path / "list.json"))
