"""Every template of `templates/`: a server is made of it and sent through the pipeline, as anybody would do it.

A line for each: the stage that it reached, score, tests, and seconds. Good is staging with 95 or more. With `--page` each
line becomes a row of the table of docs/reference/templates.md.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from benchmarks.exam.outcome import Outcome, judged
from benchmarks.exam.places import ROOT

LEAST: Final = 95
PAGE: Final = ROOT / "docs/reference/templates.md"
TABLE: Final = re.compile(
    r"(?<=<!-- drawn by: python -m benchmarks.exam templates --page -->\n).*?(?=<!-- end -->)", re.DOTALL
)
"""Where the table stands in the page."""
_ROW: Final = re.compile(r"^(\| `([a-z-]+)` \|.*)$", re.MULTILINE)
_DOCUMENT: Final = ROOT / "docs/examples/bookshop/openapi.yaml"
_PATIENCE: Final = 900  # seconds for one command


class Made(NamedTuple):
    """What came of one template; `stage` is "staging" where all went well, else the stage that failed."""

    template: str
    stage: str
    score: int
    tests: str
    seconds: float

    @property
    def good(self) -> bool:
        """Whether it is in staging with the score that is wanted."""
        return self.stage == "staging" and self.score >= LEAST


def templates(only: str = "", *, page: bool = False) -> Outcome:
    """A line for each template, or for those that are named, separated by commas; their rows of the page are written where that is wanted."""
    names = sorted(folder.name for folder in (ROOT / "templates").iterdir() if (folder / "copier.yml").is_file())
    wanted = only.split(",") if only else names
    found = []
    print("template", "stage", "score", "tests", "seconds", sep="\t")
    with TemporaryDirectory(prefix="mcpfactory-templates-") as folder:
        root = Path(folder, "workspace")
        root.mkdir()
        _run(root, "init", ".")
        for name in wanted:
            made = _made(root, name)
            print(made.template, made.stage, made.score, made.tests, f"{made.seconds:.0f}", sep="\t", flush=True)
            found.append(made)
            if page:
                PAGE.write_text(drawn(PAGE.read_text(encoding="utf-8"), made, names), encoding="utf-8")
    good = sum(made.good for made in found)
    return judged(f"{good} of {len(found)} templates staged with {LEAST} or more", good=good == len(found))


def drawn(page: str, made: Made, names: Collection[str]) -> str:
    """The page with the row of one template, and with those of others that there still are: when, what came of it, and seconds on how many processors."""
    (table,) = TABLE.findall(page)
    rows = {name: row for row, name in _ROW.findall(table) if name in names}
    when = f"{datetime.now(UTC):%Y-%m-%d}"
    cells = (f"`{made.template}`", made.stage, made.score, made.tests, f"{made.seconds:.0f}", os.cpu_count(), when)
    rows[made.template] = f"| {' | '.join(map(str, cells))} |"
    head = ("| template | reached | score | tests | seconds | processors | on |", "|---|---|---|---|---|---|---|")
    whole = "\n".join([*head, *(rows[name] for name in sorted(rows)), ""])
    return TABLE.sub(lambda _: whole, page, count=1)


def _made(root: Path, name: str) -> Made:
    began = time.monotonic()
    wish = ["--from-openapi", str(_DOCUMENT), "--name", f"{name}-made"] if name == "openapi" else [f"{name}-made"]
    made = _run(root, "new", *wish, *([] if name == "openapi" else ["--template", name]))
    if made.returncode:
        return Made(name, f"new: {made.stderr.strip()[-200:]}", 0, "", time.monotonic() - began)
    _run(root, "pipeline", "run", f"{name}-made")
    (status,) = json.loads(_run(root, "pipeline", "status", f"{name}-made", "--json").stdout)
    stages: dict[str, Any] = status["stages"]
    failed = next((stage for stage, one in stages.items() if one["outcome"] == "failed"), "staging")
    score = stages["validate"].get("summary", {}).get("score", 0)
    return Made(name, failed, score, stages["test"].get("message") or "", time.monotonic() - began)


def _run(root: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MCPFACTORY_")}
    return subprocess.run(
        [sys.executable, "-m", "mcpfactory", *command],
        cwd=root, env=environ, capture_output=True, text=True, check=False, timeout=_PATIENCE, stdin=subprocess.DEVNULL,
    )  # fmt: skip
