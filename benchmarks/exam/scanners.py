"""Open scanners of MCP servers and `mcpfactory validate` on the same samples: animals of the zoo that do harm, and healthy ones.

Each scanner is run as its documentation says, at the best setting that works without an account and without a service:
Cisco's with its YARA rules and its schema analyzer, npm's mcp-scan offline. Snyk's (once Invariant's) starts the servers here and
sends what they list to a service that judges it, so nothing of it can be had here; that is said.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from benchmarks.exam.outcome import Outcome, judged, unavailable
from benchmarks.exam.places import ROOT
from benchmarks.peers.outsiders import environment, node, npm_package
from mcpfactory_pipeline.checks import eras

__all__ = ["scanners"]

# animal → what is wrong with it
HARMFUL: Final = {
    "Ghostwriter": "hidden characters in a description",
    "Gossip": "secrets of its environment in a result",
    "Diarist": "secrets of its environment in its log",
    "Informer": "secrets of its environment in a notification",
    "Tracer": "a stack trace with paths for the model",
    "Climber": "files outside of its folder, by an argument",
    "Templated": "files outside of its folder, by a resource template",
    "Shelled": "commands within an argument",
    "Messenger": "addresses of its own machine, by an argument",
}
HEALTHY: Final = (
    *("HealthyBase", "HealthyListing", "HealthyNarrator", "HealthyRich", "HealthyGuide", "HealthyGreeter"),
    "HealthyTerminal",
)
_CISCO: Final = "cisco-ai-mcp-scanner==4.8.7"
_NPM: Final = ("mcp-scan", "2.0.8")
_SNYK: Final = "snyk-agent-scan 0.6.9: what is listed is judged by a service of Snyk's; nothing to be had without it"
_KEY: Final = "key-of-the-zoo-1234"
_PATIENCE: Final = 900  # seconds for one scanner with all samples

Found = Mapping[str, frozenset[str]]
"""Animal → what a scanner said of it."""


def scanners() -> Outcome:
    """A line for each sample: what each scanner found."""
    columns: dict[str, Callable[[Path], Found]] = {
        "mcpfactory validate": _validate,
        _CISCO.replace("==", " "): _cisco,
        " ".join(_NPM) + " (npm)": _npm,
    }
    found: dict[str, Found] = {}
    missing: list[str] = []
    ours, *_ = columns
    with TemporaryDirectory(prefix="mcpfactory-scanners-") as folder:
        for name, scan in columns.items():
            try:
                found[name] = scan(Path(folder))
            except (OSError, ValueError, subprocess.SubprocessError) as error:
                missing.append(f"{name} cannot be run: {error}")
    if ours not in found:
        return unavailable(missing[0])
    print(_SNYK)
    print("sample", "what is wrong", *found, sep="\t")
    for name in (*HARMFUL, *HEALTHY):
        print(name, HARMFUL.get(name, "nothing"), *(_told(found[column][name]) for column in found), sep="\t")
    sums = {column: sum(bool(found[column][name]) for name in HARMFUL) for column in found}
    false = {column: sum(bool(found[column][name]) for name in HEALTHY) for column in found}
    figures = [
        f"{column}: {sums[column]} of {len(HARMFUL)} found, {false[column]} of {len(HEALTHY)} honest ones accused"
        for column in found
    ]
    if missing:
        return unavailable("; ".join([*figures, *missing]))
    others = [column for column in found if column != ours]
    best = all(sums[ours] >= sums[other] and false[ours] <= false[other] for other in others)
    return judged("; ".join(figures), good=best and all(found[ours][name] for name in HARMFUL) and not false[ours])


def _told(words: frozenset[str]) -> str:
    return ", ".join(sorted(words)) or "-"


def _command(name: str) -> list[str]:
    return [sys.executable, "-m", "tests.zoo", name, ",".join(eras.HANDSHAKES), ",".join(eras.MODERNS)]


def _validate(folder: Path) -> Found:
    """Findings of severity 2 and more: what is less is a note."""
    found = {}
    for name in (*HARMFUL, *HEALTHY):
        program = [sys.executable, "-m", "mcpfactory", "validate", "--command", shlex.join(_command(name))]
        done = subprocess.run(
            [*program, "--env", f"ZOO_API_KEY={_KEY}", "--json"],
            cwd=ROOT, capture_output=True, text=True, check=False, timeout=_PATIENCE,
        )  # fmt: skip
        findings = json.loads(done.stdout)["findings"]
        found[name] = frozenset(finding["rule"] for finding in findings if finding["severity"] > 1)
    return found


def _config(folder: Path) -> Path:
    """A client's configuration with all samples: the form that scanners read."""
    servers = {}
    for number, name in enumerate(
        (*HARMFUL, *HEALTHY)
    ):  # each is the same but for the number: the form shall say nothing
        launcher = folder / f"server-{number:02}.sh"
        launcher.write_text(f"#!/bin/sh\ncd {shlex.quote(str(ROOT))} && exec {shlex.join(_command(name))}\n")
        launcher.chmod(0o755)
        servers[name] = {"command": str(launcher), "args": [], "env": {"ZOO_API_KEY": "placeholder"}}
    config = folder / "mcp.json"
    config.write_text(json.dumps({"mcpServers": servers}))
    return config


def _run(command: list[str], folder: Path) -> Any:
    """The JSON that a scanner prints; its home is an empty folder."""
    environ = {**os.environ, "HOME": str(folder), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    done = subprocess.run(
        command, cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=_PATIENCE,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if "{" not in done.stdout:
        raise ValueError(done.stderr.strip()[-300:])
    return json.loads(done.stdout[done.stdout.index("{") :])


def _cisco(folder: Path) -> Found:
    """Threats of the YARA and schema analyzers, for tools, of any severity but "safe"."""
    python = Path(environment("scanner-cisco", (_CISCO,)))
    program = [str(python.with_name("mcp-scanner")), "--analyzers", "yara,schema", "--format", "raw"]
    report = _run([*program, "config", "--config-path", str(_config(folder))], folder)
    found: dict[str, set[str]] = {name: set() for name in (*HARMFUL, *HEALTHY)}
    for result in report["scan_results"]:
        for analyzer in result["findings"].values():
            found[result["server_name"]].update(analyzer["threat_names"] if analyzer["total_findings"] else ())
    return {name: frozenset(threats) for name, threats in found.items()}


def _npm(folder: Path) -> Found:
    """What is found of a sample and not of the healthy base, whose configuration is the same."""
    program = npm_package(node().node, "scanner-npm", *_NPM) / "dist/index.js"
    report = _run([node().node, str(program), "scan", "--offline", "--json", "-c", str(_config(folder))], folder)
    found = {result["serverName"]: {one["id"] for one in result["findings"]} for result in report["results"]}
    return {name: frozenset(found[name] - found["HealthyBase"]) for name in (*HARMFUL, *HEALTHY)}
