"""An agent operates the factory: the official Python client, unmodified, brings a server from its document to production.

First the workspace leaves nothing to agents, and the promotion is refused. Then a person writes `agents` into its policy, says
no once, and then yes. Everything is real: the stages, the questions, the bytes in the channels.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.exam.outcome import Outcome, judged
from benchmarks.peers.outsiders import CLIENTS, environment
from mcpfactory_pipeline.checks import ValidationTarget, validate
from mcpfactory_pipeline.init import init_workspace
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import verify
from mcpfactory_pipeline.workspace.workspace import Workspace

__all__ = ["run"]

Json = dict[str, Any]
Row = tuple[str, bool, str]  # what was to happen, whether it did, what was seen

DOCUMENT = Path(__file__).resolve().parents[2] / "docs/examples/bookshop/openapi.yaml"
CLIENT = "mcp==2.3.0"
PATIENCE = 900  # seconds for one session of the client
POLICY = """
[[pipeline.channels]]
name = "staging"
[[pipeline.channels]]
name = "production"
from = "staging"
approvals = 1
agents = ["approve", "promote"]
"""


def run(folder: Path, times: int, seed: int) -> Outcome:
    """The way to production in both lifecycles (`times` is at most 2), each in a workspace of its own; a table of its steps."""
    del seed  # nothing is left to chance
    rows: list[tuple[str, Row]] = []
    for era in ("modern", "legacy")[:times]:
        for row in _operate(folder / era, era):
            rows.append((era, row))
            print(f"{era:7} {'ok' if row[1] else 'FAULT':6} {row[0]:58} {row[2]}", flush=True)
    good = sum(row[1] for _, row in rows)
    return judged(f"{good} of {len(rows)} steps as they should be, in {times} lifecycles", good=good == len(rows))


def _operate(root: Path, era: str) -> Iterator[Row]:
    space = init_workspace(root, git=False)
    shutil.copy(DOCUMENT, root / "bookshop.yaml")
    python = environment("python2", (CLIENT,))

    def session(*steps: Json) -> Json:
        serve = [sys.executable, "-m", "mcpfactory", "serve", "--workspace", str(root)]
        command = [python, str(CLIENTS / "python_operator.py"), era, json.dumps(steps), *serve]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=PATIENCE)
        try:
            return dict(json.loads(done.stdout.splitlines()[-1]))
        except (IndexError, ValueError):
            raise RuntimeError(f"the client ended with {done.returncode}: {done.stderr[-2000:]}") from None

    yield _examined(root)
    about = {"server": "bookshop", "reason": "score and differences were read"}
    found = session(
        {"tool": "new_server", "arguments": {"document": "bookshop.yaml", "name": "bookshop"}},
        {"tool": "run", "arguments": {"servers": ["bookshop"]}},
        {"tool": "findings", "arguments": {"server": "bookshop"}},
        {"tool": "approve", "arguments": about, "yes": True},
        {"tool": "promote", "arguments": about, "yes": True},
    )
    yield from _before(space, found)
    with (root / "mcpfactory.toml").open("a") as file:
        file.write(POLICY)
    space = Workspace.find(root)
    found = session(
        {"tool": "approve", "arguments": about, "yes": False},
        {"tool": "approve", "arguments": about, "yes": True},
        {"tool": "promote", "arguments": about, "yes": True},
        {"read": "factory://servers/bookshop/history.json"},
    )
    yield from _after(space, found)


def _examined(root: Path) -> Row:
    serve = (sys.executable, "-m", "mcpfactory", "serve", "--workspace", str(root))
    report = asyncio.run(validate(ValidationTarget(command=serve)))
    seen = f"score {report.score}, {len(report.findings)} findings, {report.tools} tools"
    return "validate finds nothing wrong with the factory's server", report.passed and not report.findings, seen


def _before(space: Workspace, found: Mapping[str, Any]) -> Iterator[Row]:
    made, ran, findings, *refused = found["done"]
    yield "an unmodified client speaks to the factory", True, f"{found['client']}, {found['revision']}"
    yield "a server is made from a document", not made["error"] and made["data"]["tools"] == 11, _short(made)
    steps = [step["stage"] for step in (ran["data"] or {}).get("steps", [])]
    whole = ["generate", "build", "test", "validate", "staging"]
    yield "the pipeline runs all stages", steps == whole and ran["data"]["passed"], ", ".join(steps) or _short(ran)
    ended = sum(any(f"bookshop: {stage} passed" in told for told in ran["progress"]) for stage in whole)
    yield "each step is told as progress", ended == len(whole), f"{len(ran['progress'])} notifications, {ended} stages"
    data = findings["data"] or {}
    yield "findings are read", "score" in data, f"score {data.get('score')}, {data.get('total')} findings"
    for name, step in zip(("approve", "promote"), refused, strict=True):
        good = step["error"] and "does not let agents" in step["text"] and "mcpfactory.toml" in step["text"]
        yield f"without a policy {name} is refused, nobody is asked", good and not step["asked"], _short(step)
    state = Store(space).state("bookshop")
    yield "nothing is in production", set(state.channels) == {"staging"}, f"channels: {', '.join(state.channels)}"


def _after(space: Workspace, found: Mapping[str, Any]) -> Iterator[Row]:
    declined, approved, promoted, history = found["done"]
    state = Store(space).state("bookshop")
    candidate = str(state.candidate)
    yield (
        "with a policy, a person who says no is obeyed",
        declined["error"] and len(declined["asked"]) == 1,
        _short(declined),
    )
    for name, step in (("approval", approved), ("promotion", promoted)):
        named = len(step["asked"]) == 1 and candidate in step["asked"][0]
        seen = (step["asked"] or [""])[0].splitlines()[0] if named else _short(step)
        yield f"the {name} is asked for, naming the candidate", not step["error"] and named, seen
    there = state.channels.get("production")
    yield "the candidate is in production", there is not None and there.candidate == candidate, f"{there}"
    told = [event for event in json.loads(history["text"]) if event["event"] in {"approved", "promoted"}]
    good = len(told) == 2 and all(event["actor"].startswith("agent:") and event.get("confirmed") for event in told)
    who = {f"{event['actor']}, confirmed by {event.get('confirmed')}" for event in told}
    yield "the history has the agent, and who said yes", good, "; ".join(sorted(who))
    wrong = verify(space)
    yield "the state is what the history says", not wrong, f"{len(wrong)} differences"


def _short(step: Mapping[str, Any]) -> str:
    text = " ".join(str(step["text"]).split())
    return text if len(text) <= 110 else f"{text[:110]}…"
