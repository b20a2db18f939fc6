"""Whole documents and what is read from them, recorded: `cases/<case>/openapi.*` → `cases/<case>/expected.json`.

A changed recording is a change for everybody downstream: read the diff. To record anew:

    python -m tests.codegen.reading.test_cases --update
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mcpfactory_codegen.openapi import read_api
from mcpfactory_codegen.read.document import load
from tests.codegen.reading.support import checked
from tests.rows import rows

CASES = sorted(path.parent for path in (Path(__file__).parent / "cases").glob("*/openapi.*"))


def reading(case: Path) -> Any:
    (source,) = case.glob("openapi.*")
    return json.loads(json.dumps(asdict(checked(read_api(load(source))))))


def recorded(case: Path) -> Path:
    return case / "expected.json"


@rows("case", CASES, name=lambda case: case.name)
def test_a_document_reads_as_it_was_recorded(case: Path) -> None:
    assert reading(case) == json.loads(recorded(case).read_text())


def test_every_version_of_the_specification_has_a_case() -> None:
    versions = {next(case.glob("openapi.*")).read_text().split("\n")[0].split()[1].strip("'\",")[:3] for case in CASES}
    assert versions >= {"2.0", "3.0", "3.1", "3.2"}


if __name__ == "__main__":
    if sys.argv[1:] != ["--update"]:
        sys.exit(f"usage: {Path(__file__).name} --update")
    for one in CASES:
        recorded(one).write_text(json.dumps(reading(one), indent=1, ensure_ascii=False) + "\n")
        print(recorded(one))
