"""The official conformance suite as a program: one run, and every check that it made."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.bench.peers.installations import node, npm_package
from benchmarks.exam.servers import ROOT

VERSION = "0.2.0-alpha.12"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_LISTED = re.compile(r"^  - (\S+)(.*)$", re.MULTILINE)
_FAILED = re.compile(r"^[✓✗] (\S+): \d+ passed, ([1-9]\d*) failed", re.MULTILINE)
_TIME = re.compile(r"-\d{4}-\d\d-\d\dT[\d-]+Z$")


class Check(NamedTuple):
    """One check of a scenario: SUCCESS, FAILURE, SKIPPED, WARNING or INFO."""

    status: str
    scenario: str
    name: str
    told: str


class Suite:
    """The suite of one version, installed at first use.

    Raises:
        CalledProcessError: it cannot be installed.
    """

    def __init__(self) -> None:
        program = node().node
        package = npm_package(program, "conformance", "@modelcontextprotocol/conformance", VERSION)
        self._command = [program, str(package / "dist/index.js")]

    def scenarios(self, side: str, *options: str, extensions: bool = False) -> list[str]:
        """The names of its scenarios, for `server` or `client`; of extensions only, when they are wanted."""
        said = self._run(["list", f"--{side}", *options])
        return [name for name, more in _LISTED.findall(said) if not extensions or "[extension]" in more]

    def examine(self, out: Path, arguments: Sequence[str], scenario: str = "") -> list[Check]:
        """One run.

        Args:
            out: a folder of this run alone.
            arguments: of the suite.
            scenario: the only one that runs; when it does not, that is a failure.
        """
        said = self._run([*arguments, *(["--scenario", scenario] if scenario else []), "-o", str(out)])
        found = list(_read(out))
        seen = {one.scenario for one in found}
        silent = {name for name, _ in _FAILED.findall(said)} - seen
        if scenario and not found:
            silent.add(scenario)
        return found + [Check("FAILURE", name, "(it did not run)", _last(said)) for name in sorted(silent)]

    def _run(self, arguments: Sequence[str]) -> str:
        command = [*self._command, *arguments]
        done = subprocess.run(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        return _COLOUR.sub("", done.stdout)


def _read(out: Path) -> Iterator[Check]:
    for file in sorted(out.rglob("checks.json")):
        scenario = _TIME.sub("", str(file.parent.relative_to(out))).removeprefix("server-")
        for check in json.loads(file.read_text("utf-8")):
            told = str(check.get("errorMessage") or check.get("description") or "").partition("\n")[0]
            yield Check(check["status"], scenario, check["id"], told[:200])


def _last(said: str) -> str:
    lines = said.strip().splitlines()
    return lines[-1][:200] if lines else "it said nothing"
