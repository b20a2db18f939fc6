"""The official conformance suite: our server in its hands, and our client."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.exam.conformance import Check, Suite
from benchmarks.exam.results import Outcome, judged, unavailable
from benchmarks.exam.servers import ROOT, everything
from mcpfactory_runtime.revisions import REVISIONS

_KNOWN = list(REVISIONS)[1:]  # the suite does not know the first one
_OURS = shlex.join([sys.executable, str(ROOT / "benchmarks/bench/peers/conformance_client.py")])
_SERVER, _CLIENT = ("--timeout", "30000"), ("--timeout", "60000")  # milliseconds for one scenario


def conformance() -> Outcome:
    """The everything server, one revision after the other, then the extensions; a line for each."""
    suite = _suite()
    if isinstance(suite, Outcome):
        return suite
    with TemporaryDirectory(prefix="mcpfactory-conformance-") as folder, everything() as url:
        return _judge("conformance", _server_runs(suite, url, Path(folder)))


def client() -> Outcome:
    """Our client, one revision after the other, then what extensions ask of clients; a line for each."""
    suite = _suite()
    if isinstance(suite, Outcome):
        return suite
    with TemporaryDirectory(prefix="mcpfactory-conformance-") as folder:
        return _judge("client", _client_runs(suite, Path(folder)))


def _suite() -> Suite | Outcome:
    try:
        return Suite()
    except (OSError, subprocess.SubprocessError) as error:
        return unavailable(
            f"the suite cannot be installed: {error}. hint: it is a package of npm: is its registry in reach?"
        )


Runs = Iterator[tuple[str, list[Check]]]


def _server_runs(suite: Suite, url: str, folder: Path) -> Runs:
    begun = ("server", "--url", url)
    for name in _KNOWN:
        yield name, suite.examine(folder / name, [*begun, "--suite", "all", "--spec-version", name, *_SERVER])
    wanted = suite.scenarios("server", extensions=True)
    runs = (suite.examine(folder / f"extension-{at}", [*begun, *_SERVER], one) for at, one in enumerate(wanted))
    yield "extensions", [check for run in runs for check in run]


def _client_runs(suite: Suite, folder: Path) -> Runs:
    """One scenario after the other: by itself the suite runs them all at once, which a small machine does not take."""
    rounds = {name: (suite.scenarios("client", "--spec-version", name), ["--spec-version", name]) for name in _KNOWN}
    rounds["authorization"] = (suite.scenarios("client", extensions=True), [])
    for name, (scenarios, options) in rounds.items():
        command = ["client", "--command", _OURS, *options, *_CLIENT]
        runs = (suite.examine(folder / name / str(at), command, one) for at, one in enumerate(scenarios))
        yield name, [check for run in runs for check in run]


def _judge(title: str, runs: Runs) -> Outcome:
    sums: Counter[str] = Counter()
    good, count = True, 0
    for name, checks in runs:
        found = Counter(check.status for check in checks)
        failed = found["FAILURE"]
        line = {"passed": found["SUCCESS"], "failed": failed, "skipped": found["SKIPPED"], "warnings": found["WARNING"]}
        print(f"{title} {name}: {', '.join(f'{value} {key}' for key, value in line.items())}", flush=True)
        for check in checks:
            if check.status in {"FAILURE", "WARNING"}:
                print(f"  {check.status} {check.scenario}: {check.name}: {check.told}", flush=True)
        sums.update(line)
        good &= found["SUCCESS"] > 0 and not failed and not found["WARNING"]
        count += 1
    figure = ", ".join(f"{value} {what}" for what, value in sums.items())
    return judged(f"{figure}; {count} runs", good=good)
