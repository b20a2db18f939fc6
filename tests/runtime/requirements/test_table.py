"""The table and the tests, held against each other in both directions."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from mcpfactory_pipeline.checks.rules import RULES
from mcpfactory_runtime.revisions import REVISIONS
from tests.runtime.requirements.marks import RUNTIME, Marked, marked
from tests.runtime.requirements.model import Row
from tests.runtime.requirements.table import ROWS, TABLE
from tests.runtime.requirements.validate_rules import GATES, NO_GATE

TESTS = marked()
NAMED = {name for test in TESTS for name in test.rows}


def test_every_row_has_a_test_or_says_why_not() -> None:
    assert [row.id for row in ROWS if row.id not in NAMED and not row.gap and not row.author] == []


def test_every_test_names_rows_that_exist() -> None:
    assert [(test.name, name) for test in TESTS for name in test.rows if name not in TABLE] == []


def test_what_only_authors_can_meet_has_no_test() -> None:
    assert [row.id for row in ROWS if row.author and (row.gap or row.id in NAMED)] == []


def test_a_test_of_a_gap_shows_nothing_else() -> None:
    """It is expected to fail, and would hide that the other row fails."""

    def mixed(test: Marked) -> bool:
        source = test.file.read_text("utf-8")
        gaps = [bool(TABLE[name].gap) for name in test.rows if f'case("{name}"' not in source]
        return any(gaps) and not all(gaps)

    assert [test.name for test in TESTS if mixed(test)] == []


def test_rows_are_told_apart_and_hold_in_some_revision() -> None:
    assert [name for name, count in Counter(row.id for row in ROWS).items() if count > 1] == []
    assert [row.id for row in ROWS if not row.revisions] == []
    assert {row.level for row in ROWS} == {"MUST", "SHOULD"}
    assert len(ROWS) >= 250
    assert all(sum(revision in row.revisions for row in ROWS) >= 80 for revision in REVISIONS.values())


def test_every_must_row_has_a_gate_or_a_reason() -> None:
    musts = {row.id for row in ROWS if row.level == "MUST"}
    assert sorted(musts - GATES.keys() - NO_GATE.keys()) == []
    assert sorted((GATES.keys() | NO_GATE.keys()) - musts) == []
    assert sorted(GATES.keys() & NO_GATE.keys()) == []


def test_gates_exist_and_apply_to_a_revision_of_the_row() -> None:
    known = {rule.id: rule for rule in RULES}
    named = [(row, rule) for row, rules in GATES.items() for rule in rules]
    assert [(row, rule) for row, rule in named if rule not in known or not known[rule].gate] == []
    for row, name in named:
        rule, revisions = known[name], [revision.name for revision in TABLE[row].revisions]
        assert any(rule.since <= one and (not rule.until or one <= rule.until) for one in revisions), (row, name)
    quoted = {name for reason in NO_GATE.values() for name in re.findall(r"`([a-z-]+\.[a-z0-9-]+)`", reason)}
    assert sorted(quoted - known.keys()) == []


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose tests name a row with a gap, in two ways; the row is made up, for the table may have no gap."""
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = requirement: x\n")
    (tmp_path / "conftest.py").write_text(
        "from tests.runtime.requirements.model import Row\n"
        "from tests.runtime.requirements.table import TABLE\n"
        "TABLE['made.up'] = Row('made.up', 'does it', 'nowhere', 'MUST', gap='nobody did it')\n"
    )
    (tmp_path / "test_gap.py").write_text(
        "import pytest\n"
        "@pytest.mark.requirement('made.up')\ndef test_open(): assert False\n"
        "@pytest.mark.requirement('made.up')\ndef test_closed(): pass\n"
    )
    return tmp_path


def test_a_gap_that_turns_out_to_be_closed_fails_the_run(project: Path) -> None:
    run = [sys.executable, "-m", "pytest", "-q", "-p", "tests.runtime.requirements.plugin", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(RUNTIME.parents[1])}
    done = subprocess.run(run, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "FAILED test_gap.py::test_closed" in done.stdout
    assert "1 failed, 1 xfailed" in done.stdout


def test_marks_are_found_in_decorators_and_in_tables_that_decorators_use(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(
        "ROWS = [case('a.b', 1), ('x', requirement('c.d'))]\n"
        "@parametrize('n', ROWS)\n@requirement('e.f', *('g.h',))\ndef test_one(n): ...\n"
        "def test_two(): ...\n"
    )
    assert [(test.name, set(test.rows)) for test in marked(tmp_path)] == [("test_one", {"a.b", "c.d", "e.f", "g.h"})]


def test_a_row_without_an_end_reaches_to_the_newest_revision() -> None:
    assert Row("a", "b", "c", "MUST").revisions == list(REVISIONS.values())
