"""Pipelines of GitLab: the one that `.gitlab-ci.yml` takes in, and the one that its first job writes."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from benchmarks.trials.ci_simulator.runner import JobResult, Runner

_STAGES = [".pre", "build", "test", "deploy", ".post"]
_RULE = re.compile(r'\$(\w+) == "([^"]*)"')


def run_pipeline(runner: Runner, file: Path, branch: str, python: str) -> dict[str, JobResult]:
    """What became of each job when the branch was pushed: those of the file, then those of the pipeline that it writes."""
    variables = {
        "CI_COMMIT_BRANCH": branch, "CI_PIPELINE_SOURCE": "push", "GITLAB_USER_LOGIN": "ada",
        "CI_SERVER_HOST": "gitlab.example", "CI_PROJECT_PATH": "ada/servers", "MCPFACTORY_PUSH_TOKEN": "token",
        # The project's URL is the repository of this trial: a push is one.
        "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_VALUE_0": "https://gitlab.example/ada/servers.git",
        "GIT_CONFIG_KEY_0": f"url.{runner.origin.as_uri()}.insteadOf",
    }  # fmt: skip
    shutil.rmtree(runner.folder / "artifacts", ignore_errors=True)
    return _Pipeline(runner, _read(file), variables, python).run()


def _read(file: Path) -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return data


@dataclass
class _Pipeline:
    """One pipeline while it runs. `handed` are the artifacts by job, which each later job gets."""

    runner: Runner
    data: Mapping[str, Any]
    variables: Mapping[str, str]
    python: str
    handed: dict[str, Path] = field(default_factory=dict)

    def run(self) -> dict[str, JobResult]:
        """All jobs, stage after stage."""
        named = {name: job for name, job in self.data.items() if isinstance(job, dict) and name[0] != "."}
        jobs = {name: self.whole(job) for name, job in named.items() if name != "workflow"}
        stages = self.data.get("stages", _STAGES)
        ran: dict[str, JobResult] = {}
        for name, job in sorted(jobs.items(), key=lambda item: stages.index(item[1]["stage"])):
            broken = any(one.result == "failure" for one in ran.values())
            needed = [ran[other].result != "success" for other in job.get("needs", ())]
            late = any(needed) if needed else broken and job.get("when") != "always"
            if late or not self.wanted(job):
                ran[name] = JobResult(name, "skipped")
            elif "trigger" in job:
                ran.update(self.child(name, job["trigger"]["include"][0]))
            else:
                ran[name] = self.job(name, job)
        return ran

    def whole(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """A job with what it extends."""
        base = self.whole(self.data[job["extends"]]) if "extends" in job else {}
        return {**base, **job, "variables": {**base.get("variables", {}), **job.get("variables", {})}}

    def wanted(self, job: Mapping[str, Any]) -> bool:
        """Whether one of its rules holds."""
        rules = [_RULE.fullmatch(rule["if"]) for rule in job.get("rules", ()) if "if" in rule]
        return not rules or any(rule is not None and self.variables.get(rule[1], "") == rule[2] for rule in rules)

    def child(self, name: str, place: Mapping[str, str]) -> dict[str, JobResult]:
        """The jobs of the pipeline that an earlier job wrote, and the job that waits for them."""
        data = _read(self.handed[place["job"]] / place["artifact"])
        inner = _Pipeline(self.runner, data, self.variables, self.python).run()
        bad = any(one.result == "failure" for one in inner.values())
        return {name: JobResult(name, "failure" if bad else "success"), **inner}

    def job(self, name: str, job: Mapping[str, Any]) -> JobResult:
        """One job: what comes before its script is in the same shell, what comes after is not."""
        place = self.runner.place(name)
        work = self.runner.clone(place, self.variables["CI_COMMIT_BRANCH"])
        for folder in self.handed.values():
            shutil.copytree(folder, work, dirs_exist_ok=True)
        environ = {**self.runner.environ(place, self.runner.python(place, self.python)), **self.variables}
        for key, value in job["variables"].items():
            environ[key] = re.sub(r"\$(\w+)", lambda found: environ.get(found[1], ""), str(value))
        script = "\n".join([*job.get("before_script", ()), *job["script"]])
        code, log = self.runner.shell(script, cwd=work, environ=environ, options=("-eo", "pipefail"))
        if "after_script" in job:
            log += self.runner.shell("\n".join(job["after_script"]), cwd=work, environ=environ)[1]
        kept = job.get("artifacts", {})
        for named in kept.get("paths", ()) if code == 0 or kept.get("when") == "always" else ():
            path = re.sub(r"\$(\w+)", lambda found: environ.get(found[1], ""), named)
            self.handed[name] = self.runner.folder / "artifacts" / name
            _keep(work / path, self.handed[name] / path)
        return JobResult(name, "success" if code == 0 else "failure", log)


def _keep(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    elif source.is_file():
        shutil.copyfile(source, target)
