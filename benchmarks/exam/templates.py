"""Examination of every template of `templates/`: create a server, run the pipeline, and do a task by the official client.

It prints a line for each: the stage that it reached, score, tests, and seconds. Good is staging with 95 or more.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from mcp import StdioServerParameters
from mcp.client import Client

from benchmarks.exam.results import Outcome, judged
from benchmarks.exam.servers import ROOT

LEAST: Final = 95
_DOCUMENT: Final = ROOT / "docs/examples/bookshop/openapi.yaml"
_PATIENCE: Final = 900  # seconds for one command
_TASKS: Final[dict[str, tuple[str, dict[str, Any], str]]] = {
    "commands": ("show_system", {"details": True}, os.uname().sysname),
    "fetch": (
        "read_html",
        {"html": "<h1>News</h1><p>Open <a href=https://example.com/>now</a>.</p>"},
        "Open [now](https",
    ),
    "filesystem": ("search_text", {"words": "tea"}, "Tea at four"),
    "git": ("list_commits", {"words": "white"}, "Add white tea"),
    "memory": ("remember", {"name": "Ana", "kind": "person", "facts": ["Likes tea."]}, "Likes tea."),
    "minimal": ("measure_text", {"text": "Four words are here."}, "4"),
    "search": ("search_documents", {"words": "annual leave"}, "**leave**"),
    "sql": ("run_query", {"sql": "SELECT title FROM books WHERE price > :least", "parameters": {"least": 10}}, "Dune"),
    "sqlite": ("run_query", {"sql": "SELECT title FROM books WHERE price > ?", "parameters": [10]}, "Dune"),
    "time": ("convert_time", {"time": "2026-12-01T12:00", "from_zone": "UTC", "to_zones": ["Asia/Tokyo"]}, "21:00"),
}
"""A task for templates whose servers need no other system: tool, arguments, and a part of the result."""


class Made(NamedTuple):
    """Result of one template; `stage` is "staging" if all stages passed, else the stage that failed."""

    template: str
    stage: str
    score: int
    tests: str
    seconds: float

    @property
    def good(self) -> bool:
        """Return True if it is in staging with the required score."""
        return self.stage == "staging" and self.score >= LEAST


def templates(only: str = "") -> Outcome:
    """Examine each template, or those in `only`, separated by commas."""
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
    good = sum(made.good for made in found)
    return judged(f"{good} of {len(found)} templates staged with {LEAST} or more", good=good == len(found))


def _made(root: Path, name: str) -> Made:
    began = time.monotonic()
    arguments = ["--from-openapi", str(_DOCUMENT), "--name", f"{name}-made"] if name == "openapi" else [f"{name}-made"]
    made = _run(root, "new", *arguments, *([] if name == "openapi" else ["--template", name]))
    if made.returncode:
        return Made(name, f"new: {made.stderr.strip()[-200:]}", 0, "", time.monotonic() - began)
    _run(root, "pipeline", "run", f"{name}-made")
    (status,) = json.loads(_run(root, "pipeline", "status", f"{name}-made", "--json").stdout)
    stages: dict[str, Any] = status["stages"]
    failed = next((stage for stage, one in stages.items() if one["outcome"] == "failed"), "staging")
    score = stages["validate"].get("summary", {}).get("score", 0)
    if failed == "staging" and name in _TASKS and (said := _fault(root, name)):
        failed = f"task: {said}"
    return Made(name, failed, score, stages["test"].get("message") or "", time.monotonic() - began)


def _fault(root: Path, name: str) -> str:
    """Do the template's task by the official client. Return the result if it is wrong, else ""."""
    tool, arguments, expected = _TASKS[name]

    async def call() -> str:
        environ = {**os.environ, "XDG_DATA_HOME": str(root / "data")}
        command = ["-m", "mcpfactory", "run", f"{name}-made", "--demo"]
        async with Client(StdioServerParameters(command=sys.executable, args=command, cwd=root, env=environ)) as client:
            return str(await client.call_tool(tool, arguments))

    said = asyncio.run(call())
    return "" if expected in said else said[:300]


def _run(root: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MCPFACTORY_")}
    return subprocess.run(
        [sys.executable, "-m", "mcpfactory", *command],
        cwd=root, env=environ, capture_output=True, text=True, check=False, timeout=_PATIENCE, stdin=subprocess.DEVNULL,
    )  # fmt: skip
