"""Servers evaluated by a scripted model over an endpoint on loopback, and a gate on it, as a person would do it.

`bookshop` and the two servers of this repository with the most tools are asked their own cases with their tools as they are and with words
swapped between tools. Then a workspace of its own gates its staging on the pass rate of the bookshop: closed without a report, open with one,
closed when the descriptions are shuffled (with the old report, and with a new one), open again when the old ones are back.

The model is a script and no model: it knows a part of what each tool says of itself (`SKILL`) and takes the tool whose words fit best.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import yaml

from benchmarks.exam.outcome import Outcome, judged
from benchmarks.exam.places import ROOT
from benchmarks.trials.model_endpoint import KEY, ModelServer, serve_model
from benchmarks.trials.scripted_model import Script, Step, understood
from mcpfactory_pipeline.plan.gates import closed_gates
from mcpfactory_pipeline.plan.policy import read_channels
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.evaluation_case import EvaluationCase, read_cases
from mcpfactory_pipeline.workspace.workspace import Workspace

__all__ = ["evaluation", "scripted"]

SERVERS: Final = ("bookshop", "meta-ads", "closebot")
SKILL: Final = 0.6
WANTED: Final = 0.3  # of the lower bound, at the gate
_MODEL: Final = "openai:scripted"
_PATIENCE: Final = 1500  # seconds for one command
_CHANNEL: Final = f"""
[pipeline.evaluation]
models = ["{_MODEL}"]

[[pipeline.channels]]
name = "staging"
gates = {{ min_pass_rate = {WANTED}, max_report_days = 30 }}
"""


def scripted(cases: tuple[EvaluationCase, ...], about: Mapping[str, str], skill: float = SKILL) -> Script:
    """Return what somebody thinks of at each question who knows so large a part of what the tools say of themselves."""
    script = {}
    for case in cases:
        given: dict[str, dict[str, Any]] = {}
        for call in (call for way in case.right for call in way):
            given.setdefault(call.tool, dict(call.arguments))
        script[case.question] = [
            Step(
                understood(case.question, f"{call.tool} {about.get(call.tool, '')}", skill),
                {**given, call.tool: dict(call.arguments)},
            )
            for call in (case.right[0] if case.right else ())
        ]
    return script


def evaluation(only: str = "") -> Outcome:
    """A line for each server and list, then one for each state of the gate."""
    names = only.split(",") if only else SERVERS
    rows = [row for name in names for row in _measured(name)]
    print("server", "list", "tools", "questions", "passed", "95 %", "seconds", "tokens read", sep="\t")
    for row in rows:
        print(*list(row.values())[:-1], sep="\t", flush=True)
    states = list(_gated())
    print("bookshop", "gate", "because", sep="\t")
    for title, open_, _, words in states:
        print(title, "open" if open_ else "closed", words, sep="\t", flush=True)
    fooled = [row for row in rows if row["list"] != "own" and _is_fooled(row, _own(rows, row["server"]))]
    right = all(open_ is wanted for _, open_, wanted, _ in states)
    figure = "; ".join(f"{row['server']} {row['passed']} {row['interval']}" for row in rows if row["list"] == "own")
    return judged(
        f"{figure}; gate {'as it should be' if right else 'wrong'} in {len(states)} states", good=right and not fooled
    )


def _is_fooled(row: dict[str, Any], own: dict[str, Any]) -> bool:
    """Whether a list with wrong words does as well as the server's own; one with right descriptions at wrong names may, and no better."""
    return bool(row["share"] > own["share"] if row["list"] == "renamed" else row["share"] >= own["share"])


def _own(rows: list[dict[str, Any]], server: str) -> dict[str, Any]:
    return next(row for row in rows if row["server"] == server and row["list"] == "own")


def _measured(name: str) -> Iterator[dict[str, Any]]:
    """Ask the cases of a server of this repository, with its own words, with descriptions swapped, and with all swapped."""
    with _served(ROOT, name) as endpoint:
        data = _command(ROOT, endpoint, "evaluate", name, *_ask(endpoint), "--jobs", "3", "--check-cases", "--json")
    for one in data["report"]["figures"]:
        rate = one["rate"]
        yield {
            "server": name,
            "list": one["words"],
            "tools": one["tools"],
            "questions": rate["questions"],
            "passed": f"{rate['rate']:.0%}",
            "interval": f"{rate['lower']:.0%}–{rate['upper']:.0%}",
            "seconds": one["seconds"],
            "read": one["usage"]["read"],
            "share": rate["rate"],
        }


def _gated() -> Iterator[tuple[str, bool, bool, str]]:
    """Yield what was done, whether the gate was open then, whether it should be, and what the pipeline said."""
    with TemporaryDirectory(prefix="mcpfactory-evaluation-") as place:
        root = Path(place)
        folder = root / "servers/bookshop"
        _run(root, "init", ".")
        _run(root, "new", "--from-openapi", str(ROOT / "docs/examples/bookshop/openapi.yaml"), "--name", "bookshop")
        for name in (
            "tests/upstream.py",
            "tests/service.py",
            "pyproject.toml",
        ):  # the model of the API, and what it needs
            shutil.copyfile(ROOT / "servers/bookshop" / name, folder / name)
        shutil.copytree(ROOT / "servers/bookshop/evals", folder / "evals", ignore=shutil.ignore_patterns("*.md"))
        with (root / "mcpfactory.toml").open("a", encoding="utf-8") as file:
            file.write(_CHANNEL)
        document, kept = next(iter((folder / "api").glob("openapi.*"))), folder / "evals/reports/openai-scripted.json"
        before = document.read_bytes()
        with _served(root, "bookshop") as endpoint:
            ask = ("evaluate", "bookshop", *_ask(endpoint), "--report", "--json")
            yield "nobody was asked", *_gate(root, wanted=False)
            _command(root, endpoint, *ask)
            first = kept.read_bytes()
            yield "the model was asked", *_gate(root, wanted=True)
            document.write_bytes(_shuffled(before))
            yield "descriptions shuffled", *_gate(root, wanted=False)
            _command(root, endpoint, *ask)
            yield "shuffled, and asked anew", *_gate(root, wanted=False)
            document.write_bytes(before)
            yield "descriptions back", *_gate(root, wanted=False)
            kept.write_bytes(first)
            yield "and the report of them", *_gate(root, wanted=True)


def _gate(root: Path, *, wanted: bool) -> tuple[bool, bool, str]:
    """Run the pipeline, and return whether the gate is open for the newest candidate, whether it should be, and why it is not."""
    _run(root, "pipeline", "run", "bookshop", "--json", good=(0, 1))
    workspace = Workspace.find(root)
    state = Store(workspace).state("bookshop")
    newest, (channel,) = state.candidates[str(state.candidate)], read_channels(workspace)
    closed = closed_gates(channel.gates, newest, state.channels.get(channel.name))
    offered = channel.name in state.channels and state.channels[channel.name].candidate == state.candidate
    if not closed and not offered:
        raise SystemExit(f"the gate is open, and staging does not offer {state.candidate}")
    return not closed, wanted, "; ".join(closed.values()) or f"{state.candidate} is in staging"


def _shuffled(document: bytes) -> bytes:
    """Return an API document whose operations have the texts of others, half a list away."""
    data = yaml.safe_load(document)
    operations = [
        one
        for path in data["paths"].values()
        for method, one in path.items()
        if method in {"get", "put", "post", "patch", "delete"}
    ]
    texts = [{key: one.pop(key) for key in ("summary", "description") if key in one} for one in operations]
    half = len(operations) // 2
    for number, one in enumerate(operations):
        one.update(texts[(number + half) % len(texts)])
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True).encode()


@contextmanager
def _served(root: Path, name: str) -> Iterator[ModelServer]:
    """Serve a model that knows its part of the tools of a server as they are now."""
    folder = root / "servers" / name
    (manifest,) = folder.glob("src/*/_generated/manifest.json")
    about = {tool["name"]: tool.get("description", "") for tool in json.loads(manifest.read_bytes())["tools"]}
    with serve_model(scripted(read_cases(folder), about)) as endpoint:
        yield endpoint


def _ask(endpoint: ModelServer) -> tuple[str, ...]:
    return "--model", _MODEL, "--endpoint", f"{endpoint.root}/v1"


def _command(root: Path, endpoint: ModelServer, *command: str) -> Any:
    return json.loads(_run(root, *command, good=(0, 1)).stdout)


def _run(root: Path, *command: str, good: tuple[int, ...] = (0,)) -> subprocess.CompletedProcess[str]:
    environ = {key: value for key, value in os.environ.items() if not key.startswith("MCPFACTORY_")}
    done = subprocess.run(
        [sys.executable, "-m", "mcpfactory", *command],
        cwd=root,
        env={**environ, "OPENAI_API_KEY": KEY, "MCPFACTORY_ACTOR": "examiner"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        check=False,
    )
    if done.returncode not in good:
        raise SystemExit(f"mcpfactory {' '.join(command)} ended with {done.returncode}\n{done.stderr[-2000:]}")
    return done
