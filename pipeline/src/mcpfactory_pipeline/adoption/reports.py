"""What the tests of a server that is not ours say: a report as JUnit or as TAP, or an exit code alone. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from xml.etree import ElementTree as ET

__all__ = ["NO_REPORT", "TestCount", "read_junit", "read_tap"]

_LARGEST: Final = 1 << 26  # bytes of a report
_SHOWN: Final = 3
_TAP: Final = re.compile(r"^(?P<not>not )?ok\b(?:[ \t]+(?P<number>\d+))?(?P<rest>[^\n]*)$", re.M)
_PLAN: Final = re.compile(r"^1\.\.(\d{1,9})\b", re.M)
_DIRECTIVE: Final = re.compile(r"#\s*(skip|todo)\b", re.I)


@dataclass(frozen=True, slots=True)
class TestCount:
    """How many tests there were, and what became of them; `form` is what the report was, `names` are those that failed."""

    __test__ = False  # no class of tests

    form: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    names: tuple[str, ...] = ()

    @property
    def tests(self) -> int:
        """All of them."""
        return self.passed + self.failed + self.skipped

    def words(self) -> str:
        """`3 passed, 1 failed: refuses`."""
        said = f"{self.passed} passed"
        said += f", {self.failed} failed: {', '.join(self.names[:_SHOWN])}" if self.failed else ""
        return said + (f", {self.skipped} skipped" if self.skipped else "")


NO_REPORT: Final = TestCount("")


def read_junit(data: bytes) -> TestCount | None:
    """Return what a report in the form of JUnit says; None for what is none.

    Each `testcase` counts once, whatever the totals of the suites say.
    """
    if len(data) > _LARGEST or b"<!DOCTYPE" in data[:4096] or b"<!ENTITY" in data:
        return None
    try:
        root = ET.fromstring(data)  # noqa: S314 - without a document type, so that there are no entities
    except ET.ParseError:
        return None
    if root.tag not in {"testsuites", "testsuite"}:
        return None
    passed, skipped, names = 0, 0, list[str]()
    for case in root.iter("testcase"):
        found = {child.tag for child in case}
        if found & {"failure", "error"}:
            names.append(case.get("name", "?")[:100])
        elif "skipped" in found:
            skipped += 1
        else:
            passed += 1
    return TestCount("JUnit", passed, len(names), skipped, tuple(names))


def read_tap(text: str) -> TestCount | None:
    """Return what a report in the form of TAP says; None for what is none.

    Lines of subtests are indented and belong to the line of their test. Tests that the plan promises and that are not there failed.
    """
    plan, lines = _PLAN.search(text), list(_TAP.finditer(text))
    if plan is None:
        return None
    passed, skipped, names = 0, 0, list[str]()
    for line in lines:
        if _DIRECTIVE.search(line["rest"]):
            skipped += 1
        elif line["not"]:
            names.append(line["rest"].strip(" -")[:100] or f"test {line['number']}")
        else:
            passed += 1
    missing = int(plan[1]) - len(lines)
    names += [f"{missing} that the plan promises"] * (missing > 0)
    return TestCount("TAP", passed, len(names) - (missing > 0) + max(0, missing), skipped, tuple(names))
