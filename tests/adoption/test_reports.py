"""Reports of tests that are not ours, as JUnit and TAP, and what an exit code says without one."""

from __future__ import annotations

import pytest

from mcpfactory_pipeline.adoption.project_tests import judge_test_run, read_junit, read_tap
from tests.subtest_table import parametrize_subtests

JUNIT = b"""<?xml version="1.0"?><testsuites tests="99"><testsuite name="a" tests="99" failures="0">
<testcase name="adds"/><testcase name="refuses"><failure message="no"/></testcase>
<testcase name="breaks"><error/></testcase><testcase name="later"><skipped/></testcase></testsuite></testsuites>"""
TAP = "TAP version 13\nok 1 - adds\nnot ok 2 - refuses\n    ok 1 - inner\n    1..1\nok 3 - later # SKIP no time\nnot ok 4 - one day # TODO\n1..4\n"


def test_junit_counts_the_cases_and_not_what_the_suites_claim():
    found = read_junit(JUNIT)
    assert found is not None
    assert (found.passed, found.failed, found.skipped, found.names) == (1, 2, 1, ("refuses", "breaks"))


def test_tap_counts_the_outer_tests_and_those_that_the_plan_promises():
    found = read_tap(TAP)
    assert found is not None
    assert (found.passed, found.failed, found.skipped, found.names) == (1, 1, 2, ("refuses",))
    short = read_tap("1..3\nok 1\n")
    assert short is not None
    assert (short.passed, short.failed, short.names) == (1, 2, ("2 that the plan promises",))


@parametrize_subtests(
    "text",
    [
        b"",
        b"ok",
        b"<html/>",
        b"<testsuite",
        b'<!DOCTYPE x [<!ENTITY a "b">]><testsuite/>',
        b"<testsuite>&a;</testsuite>",
    ],
)
def test_what_is_no_report_of_junit_is_none(text):
    assert read_junit(text) is None


@pytest.mark.parametrize("text", ["", "all is ok\n", "ok 1\n"])
def test_text_without_a_plan_is_no_tap(text):
    assert read_tap(text) is None


GOOD = b'<testsuite><testcase name="a"/></testsuite>'


@parametrize_subtests(
    "code, said, report, wanted, verdict",
    [
        (0, "", GOOD, "r.xml", (True, "1 passed (JUnit)")),
        (1, "", GOOD, "r.xml", (False, "the tests ended with exit 1, although JUnit says 1 passed")),
        (0, "", JUNIT, "r.xml", (False, "1 passed, 2 failed: refuses, breaks, 1 skipped (JUnit)")),
        (0, "", b"<testsuite/>", "r.xml", (False, "no test passed (JUnit: 0 passed)")),
        (0, "", None, "r.xml", (False, "the tests ended with exit 0 and wrote no r.xml: the results are unknown")),
        (
            0,
            "",
            b"hello",
            "r.xml",
            (False, "r.xml is neither a JUnit nor a TAP report: the results are unknown"),
        ),
        (0, "", b"1..1\nok 1\n", "r.tap", (True, "1 passed (TAP)")),
        (0, "ok 1\n1..1\n", None, "", (True, "1 passed (TAP)")),
        (0, "not ok 1 - x\n1..1\n", None, "", (False, "no test passed (TAP: 0 passed, 1 failed: x)")),
        (0, "fine", None, "", (True, "the tests ended with exit 0; their number is unknown without a report")),
        (3, "bad", None, "", (False, "the tests ended with exit 3; their number is unknown without a report")),
    ],
)
def test_exit_code_and_report_must_both_be_good(code, said, report, wanted, verdict):
    found = judge_test_run(code, said, report, wanted=wanted)
    assert (found.good, found.message) == verdict
