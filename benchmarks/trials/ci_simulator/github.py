"""A workflow of GitHub Actions, job by job as they need each other, step by step."""

from __future__ import annotations

import fnmatch
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from benchmarks.trials.ci_simulator.expressions import evaluate, filled
from benchmarks.trials.ci_simulator.runner import JobResult, Runner


def run_workflow(
    runner: Runner,
    file: Path,
    ref: str,
    *,
    only: tuple[str, ...] = (),
    base: str = "",
    queue: str = "",
    head: str = "feature",
    repository: str = "ada/servers",
    after: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> dict[str, JobResult]:
    """What became of each job of the workflow in `file`, when `ref` was pushed; of a matrix, each under a name with its number.

    With `only`, these jobs, and what they need must be among them, or in `after`: jobs that ran before, with their results and
    outputs; then what they uploaded is still there. With a `base` it is a pull request for that branch,
    from the branch `head` of a `repository`; with a `queue` it is a merge group that was made from that commit.
    """
    jobs = yaml.safe_load(file.read_text(encoding="utf-8"))["jobs"]
    tag = ref.startswith("refs/tags/")
    github = {
        "ref": ref,
        "ref_name": ref.split("/", 2)[2],
        "event_name": "pull_request" if base else "merge_group" if queue else "push",
        "base_ref": base,
        "head_ref": head if base else "",
        "repository": "ada/servers",
        "token": "token",
        "actor": "ada",
        "ref_type": tag and "tag",
        "event": {
            **_event(runner, ref),
            **({"merge_group": {"base_sha": queue}} if queue else {}),
            **({"pull_request": {"head": {"repo": {"full_name": repository}}}} if base else {}),
        },
    }
    artifacts = runner.folder / "artifacts"
    if not after:
        shutil.rmtree(artifacts, ignore_errors=True)
    ran: dict[str, JobResult] = {}
    results: dict[str, dict[str, Any]] = {name: dict(known) for name, known in after.items()}
    waiting = {name: job for name, job in jobs.items() if not only or name in only}
    while waiting:
        name = next(name for name, job in waiting.items() if not set(_needs(job)) & set(waiting))
        job = waiting.pop(name)
        needs = {other: results[other] for other in _needs(job)}
        done = _run_job(runner, name, job, {"github": github, "needs": needs, "secrets": {}}, artifacts)
        ran.update({one.name: one for one in done})
        results[name] = {"result": _worst(done), "outputs": done[-1].outputs if done else {}}
    return ran


def _event(runner: Runner, ref: str) -> dict[str, Any]:
    """What a push says of the commit before it, as if the newest one had been pushed alone."""
    words = ["git", "-C", str(runner.origin), "rev-parse", "--quiet", "--verify", f"{ref}~1"]
    before = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    return {"before": before or "0" * 40, "created": not before}


def _needs(job: Mapping[str, Any]) -> list[str]:
    needs = job.get("needs", [])
    return [needs] if isinstance(needs, str) else list(needs)


def _worst(done: list[JobResult]) -> str:
    results = {one.result for one in done}
    return next((result for result in ("failure", "success") if result in results), "skipped")


def _run_job(
    runner: Runner, name: str, job: Mapping[str, Any], context: dict[str, Any], artifacts: Path
) -> list[JobResult]:
    good = all(need["result"] == "success" for need in context["needs"].values())
    states = {"cancelled": lambda: False, "success": lambda: good, "always": lambda: True, "failure": lambda: not good}
    if not _goes(str(job.get("if", "")), context, states):
        return [JobResult(name, "skipped")]
    matrix = filled(job.get("strategy", {}).get("matrix"), context, states)
    if matrix is None:
        return [_Job(runner, name, job, context, artifacts).run()]
    done = []
    for number, entry in enumerate(matrix["include"], 1):
        done.append(_Job(runner, f"{name}-{number}", job, {**context, "matrix": entry}, artifacts).run())
    return done


def _goes(condition: str, context: Mapping[str, Any], states: Mapping[str, Any]) -> bool:
    """A condition that asks for no state goes only where all went well."""
    bare = condition.strip().removeprefix("${{").removesuffix("}}")
    asks = any(f"{state}()" in bare for state in states)
    good = asks or bool(states["success"]())
    return good and (not bare or bool(evaluate(bare, context, states)))


@dataclass
class _Job:
    """One job while it runs."""

    runner: Runner
    name: str
    job: Mapping[str, Any]
    context: dict[str, Any]
    artifacts: Path
    log: list[str] = field(default_factory=list)
    steps: dict[str, dict[str, Any]] = field(default_factory=dict)
    failed: bool = False
    work: Path = Path()
    programs: Path | None = None

    def run(self) -> JobResult:
        """Does all its steps."""
        self.place = self.runner.place(self.name)
        self.context["steps"] = self.steps
        for step in self.job["steps"]:
            states = {
                "cancelled": lambda: False, "success": lambda: not self.failed,
                "always": lambda: True, "failure": lambda: self.failed,
            }  # fmt: skip
            if not _goes(str(step.get("if", "")), self.context, states):
                continue
            options = {key: filled(value, self.context, {}) for key, value in step.get("with", {}).items()}
            if "uses" in step:
                action = step["uses"].partition("@")[0]
                self.log.append(f"uses {action} {options}")
                ACTIONS[action](self, options)
            else:
                self._script(step)
        summary = self.place / "summary"
        outputs = {key: str(filled(value, self.context, {})) for key, value in self.job.get("outputs", {}).items()}
        return JobResult(
            self.name,
            "failure" if self.failed else "success",
            "\n".join(self.log),
            outputs,
            summary.read_text() if summary.exists() else "",
        )

    def _script(self, step: Mapping[str, Any]) -> None:
        assert "${{" not in step["run"], "a value from outside would be a part of the script"
        output, summary = self.place / "output", self.place / "summary"
        output.write_text("")
        given = {**self.job.get("env", {}), **step.get("env", {})}
        environ = {
            **self.runner.environ(self.place, self.programs),
            "GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary),
            **{key: str(filled(value, self.context, {})) for key, value in given.items()},
        }  # fmt: skip
        code, told = self.runner.shell(step["run"], cwd=self.work, environ=environ)
        self.log.append(f"{told}(exit code {code})")
        self.failed = self.failed or code != 0
        if "id" in step:
            lines = (line.partition("=") for line in output.read_text().splitlines())
            self.steps[step["id"]] = {"outputs": {key: value for key, _, value in lines}}

    def checkout(self, options: Mapping[str, Any]) -> None:
        ref = str(options.get("ref") or self.context["github"]["ref_name"])
        self.work = self.runner.clone(self.place, ref, whole=str(options.get("fetch-depth", 1)) == "0")

    def setup_python(self, options: Mapping[str, Any]) -> None:
        self.programs = self.runner.python(self.place, str(options["python-version"]))

    def upload(self, options: Mapping[str, Any]) -> None:
        source, target = self.work / options["path"], self.artifacts / str(options["name"])
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)

    def download(self, options: Mapping[str, Any]) -> None:
        target = self.work / str(options["path"])
        if "name" in options:
            shutil.copytree(self.artifacts / str(options["name"]), target, dirs_exist_ok=True)
            return
        for found in self.artifacts.glob("*"):
            if fnmatch.fnmatch(found.name, str(options["pattern"])):
                shutil.copytree(found, target / found.name, dirs_exist_ok=True)

    def nothing(self, options: Mapping[str, Any]) -> None:
        """An attestation needs the provider's identity; nothing else depends on it."""


ACTIONS = {
    "actions/checkout": _Job.checkout,
    "actions/setup-python": _Job.setup_python,
    "actions/upload-artifact": _Job.upload,
    "actions/download-artifact": _Job.download,
    "actions/attest-build-provenance": _Job.nothing,
}
