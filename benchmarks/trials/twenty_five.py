"""The commands of docs/how-to/twenty-five-stages.md, block by block: from an empty folder to production through 25 stages.

After each block the inbox must have what the table of the page says, for every server, and nothing else.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Final

from benchmarks.exam.outcome import Outcome, judged
from benchmarks.trials.ground import ROOT

__all__ = ["run"]

_PAGE: Final = ROOT / "docs" / "how-to" / "twenty-five-stages.md"
_ROW: Final = re.compile(r"^\| (\d+) \| (?:`approval`: `([\w-]+)`|nothing)", re.MULTILINE)


def run(folder: Path, times: int, _seed: int) -> Outcome:
    """`times` servers; the figure says how many stages they have, and after how many blocks the inbox was as the page says."""
    space = folder / "space"
    space.mkdir()
    page = _PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    expected = {int(number): stage for number, stage in _ROW.findall(page)}
    faults, begun = [], time.monotonic()
    for number, block in enumerate(blocks, 1):
        if code := _execute(space, block, times):
            faults.append(f"block {number} ended in {code}")
        if number in expected:
            faults += _inbox(space, number, expected[number], times)
        print(f"block {number}: {time.monotonic() - begun:.0f} s", flush=True)
    nodes = json.loads(_output(space, "pipeline", "graph", "--format", "json"))
    faults += [] if len(nodes) == 25 else [f"{len(nodes)} stages"]
    faults += [] if sum(node["kind"] == "approval" for node in nodes) == 4 else ["not four approvals"]
    for row in json.loads(_output(space, "pipeline", "status", "--json")):
        left = [name for name, stage in row["stages"].items() if stage["verdict"] != "up-to-date"]
        faults += [f"{row['server']}: {', '.join(left)} is not up to date"] if left else []
        faults += [] if "production" in row["channels"] else [f"{row['server']} is not in production"]
    for fault in faults:
        print(fault)
    words = f"{times} servers, {len(nodes)} stages, {len(expected)} looks into the inbox; {len(faults)} not as the page says"
    return judged(words, good=not faults)


def _environment(count: int = 0) -> dict[str, str]:
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": tools, "EXAMPLES": str(ROOT / "docs" / "examples"), "COUNT": str(count)}


def _execute(space: Path, block: str, count: int) -> int:
    done = subprocess.run(
        ["bash", "-e", "-c", block], cwd=space, env=_environment(count), stdout=subprocess.DEVNULL, check=False
    )
    return done.returncode


def _output(space: Path, *words: str) -> str:
    command = [sys.executable, "-m", "mcpfactory", *words]
    return subprocess.run(command, cwd=space, env=_environment(), capture_output=True, text=True, check=True).stdout


def _inbox(space: Path, number: int, stage: str, count: int) -> list[str]:
    items = json.loads(_output(space, "inbox", "--json"))
    found = Counter((item["kind"], item["about"]) for item in items)
    wanted = Counter({("approval", stage): count}) if stage else Counter[tuple[str, str]]()
    print(f"inbox after block {number}: {dict(found) or 'nothing'}", flush=True)
    return [] if found == wanted else [f"after block {number}: {dict(found)}, expected {dict(wanted)}"]
