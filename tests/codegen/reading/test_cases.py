"""Whole documents and what is read from them, recorded: `cases/<case>/openapi.*` → `cases/<case>/expected.yaml`.

A recording leaves out what has its default in `ir.py`. A changed recording is a change for everybody downstream: read the diff. To record anew:

    python -m tests.codegen.reading.test_cases --update
"""

from __future__ import annotations

import sys
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

import yaml

from mcpfactory_codegen.openapi import read_api
from mcpfactory_codegen.read.document import load
from tests.codegen.reading.support import checked
from tests.subtest_table import parametrize_subtests

CASES = sorted(path.parent for path in (Path(__file__).parent / "cases").glob("*/openapi.*"))


def reading(case: Path) -> Any:
    (source,) = case.glob("openapi.*")
    return sparse(checked(read_api(load(source))))


def sparse(value: Any) -> Any:
    """Return the value as plain data, with those fields of records that do not have their default."""
    if is_dataclass(value):
        default = {
            one.name: one.default if one.default is not MISSING else one.default_factory for one in fields(value)
        }
        found = {name: getattr(value, name) for name in default}
        return {
            name: sparse(one)
            for name, one in found.items()
            if (default[name]() if callable(default[name]) else default[name]) != one
        }
    if isinstance(value, dict):
        return {key: sparse(one) for key, one in value.items()}
    return [sparse(one) for one in value] if isinstance(value, list | tuple) else value


def recorded(case: Path) -> Path:
    return case / "expected.yaml"


@parametrize_subtests("case", CASES, name=lambda case: case.name)
def test_a_document_reads_as_it_was_recorded(case: Path) -> None:
    assert reading(case) == yaml.safe_load(recorded(case).read_text())


def test_every_version_of_the_specification_has_a_case() -> None:
    versions = {next(case.glob("openapi.*")).read_text().split("\n")[0].split()[1].strip("'\",")[:3] for case in CASES}
    assert versions >= {"2.0", "3.0", "3.1", "3.2"}


if __name__ == "__main__":
    if sys.argv[1:] != ["--update"]:
        sys.exit(f"usage: {Path(__file__).name} --update")
    for one in CASES:
        text = yaml.safe_dump(reading(one), sort_keys=False, allow_unicode=True, default_flow_style=None, width=140)
        recorded(one).write_text(text)
        print(recorded(one))
