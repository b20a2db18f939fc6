"""What `init` writes, on the day it is pushed: each job of the written workflow by hand, in a fresh clone with an empty home.

Green, with state and history on the branch; nothing to do at the second push; red when a server's test is broken, and what
was found is kept all the same. So for GitHub and GitLab, and with the factory from its wheels in the workspace and from a
repository; the workflow for releases up to the job that publishes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.exam.results import Outcome, judged
from benchmarks.trials.ci_simulator import JobResult, Runner, run_pipeline, run_workflow

ROOT = Path(__file__).resolve().parents[2]
SHOP = ROOT / "docs/examples/bookshop/openapi.yaml"
GITHUB = {"plan": "success", "shard-1": "success", "fold": "success", "keep": "success"}
NOTHING = {"plan": "success", "shard": "skipped", "fold": "success", "keep": "skipped"}
RED = {"plan": "success", "shard-1": "failure", "fold": "success", "keep": "success"}
_GITLAB = {
    "mcpfactory-plan": "success",
    "mcpfactory-run": "success",
    "shard-1": "success",
    "fold": "success",
    "keep": "success",
}
_GITLAB_RED = {**_GITLAB, "mcpfactory-run": "failure", "shard-1": "failure"}
_RELEASE = {"check": "success", "run": "success"}


@dataclass(frozen=True)
class Pushed:
    """A workspace in a repository, and the one that it is pushed to."""

    root: Path
    runner: Runner

    def factory(self, *words: str) -> str:
        """Runs `mcpfactory …` in the workspace, as its owner."""
        return _run([sys.executable, "-m", "mcpfactory", *words], self.root)

    def push(self, words: str) -> None:
        """Commits what is there, takes what jobs left on the branch, and pushes."""
        git(self.root, "add", "-A")
        if git(self.root, "status", "--porcelain"):
            git(self.root, "commit", "-qm", words)
        if git(self.root, "ls-remote", "origin"):
            git(self.root, "pull", "-q", "--rebase", "origin", "main")
        git(self.root, "push", "-q", "--follow-tags", "origin", "HEAD:main")

    def github(self) -> dict[str, JobResult]:
        """The jobs of the workflow, for the branch as it was pushed."""
        return run_workflow(self.runner, self.root / ".github/workflows/mcpfactory.yml", "refs/heads/main")

    def release(self, tag: str) -> dict[str, JobResult]:
        """The jobs of the workflow for releases that have no secret, for a tag."""
        file = self.root / ".github/workflows/mcpfactory-release.yml"
        return run_workflow(self.runner, file, f"refs/tags/{tag}", only=("check", "run"))

    def gitlab(self) -> dict[str, JobResult]:
        """The jobs of both pipelines of GitLab."""
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        return run_pipeline(self.runner, self.root / ".gitlab/mcpfactory.yml", "main", version)

    def kept(self) -> list[str]:
        """The subjects of what stands on the branch now, newest first."""
        return git(self.runner.origin, "log", "--format=%s", "main").splitlines()


def prepare(folder: Path, *options: str, shared: bool = False) -> Pushed:
    """A workspace as `init` makes it, with one server, and an empty repository to push to."""
    origin = folder / "origin.git"
    _run(["git", "init", "--quiet", "--bare", "--initial-branch", "main", str(origin)], folder)
    _run([sys.executable, "-m", "mcpfactory", "init", "servers", *options], folder)
    pushed = Pushed(folder / "servers", Runner(folder, origin, shared))
    for key, value in (("user.name", "ada"), ("user.email", "ada@example.org")):
        git(pushed.root, "config", key, value)
    git(pushed.root, "remote", "add", "origin", origin.as_uri())
    return pushed


def broken_test(pushed: Pushed, server: str) -> None:
    """A test of the server that fails, pushed."""
    (pushed.root / "servers" / server / "tests/test_broken.py").write_text("def test_it():\n    assert 1 == 2\n")
    pushed.push("A test that fails")


def faults(what: str, ran: Mapping[str, JobResult], wanted: Mapping[str, str]) -> Iterator[str]:
    """What is not as it should be, with the log of each job that is not."""
    found = {name: one.result for name, one in ran.items()}
    print(f"{what}: {', '.join(f'{name} {result}' for name, result in found.items())}", flush=True)
    if found != wanted:
        bad = [one.log for name, one in ran.items() if one.result != wanted.get(name)]
        yield f"{what}: {found}, not {dict(wanted)}\n" + "\n".join(bad)


def run(folder: Path, times: int, seed: int) -> Outcome:
    """`times` times for each origin of the factory; the seed changes nothing."""
    del seed
    found, count = list[str](), 0
    for number in range(times):
        for name, (options, road) in _ORIGINS.items():
            place = folder / f"{name} {number}"
            place.mkdir()
            for what, ran, wanted in road(prepare(place, *(option.format(**_here(folder)) for option in options))):
                count += 1
                found += faults(f"{name}: {what}", ran, wanted)
    for fault in found:
        print(fault)
    figure = f"{count} workflows by hand, each step as written, of workspaces that take the factory from {' and '.join(_ORIGINS)}"
    return judged(f"{figure}; {len(found)} not as promised", good=not found)


def _here(folder: Path) -> dict[str, str]:
    """A clone of this repository, so that jobs get what is committed here, and its commit."""
    clone = folder / "factory.git"
    if not clone.exists():
        _run(["git", "clone", "--quiet", "--bare", str(ROOT), str(clone)], folder)
    return {"clone": clone.as_uri(), "head": git(ROOT, "rev-parse", "HEAD")}


def _whole(pushed: Pushed) -> Iterator[_Case]:
    """Everything that init and ci write: empty, green, nothing due, red; GitLab; a release."""
    pushed.push("A workspace")
    yield "nothing but what init wrote", pushed.github(), NOTHING
    pushed.factory("new", "hello", "--template", "minimal")
    pushed.factory("new", "--from-openapi", str(SHOP), "--name", "bookshop")
    pushed.push("Two servers")
    yield "first servers", pushed.github(), GITHUB
    assert pushed.kept()[0].startswith("Pipeline: state"), pushed.kept()
    yield "pushed again", pushed.github(), NOTHING
    broken_test(pushed, "hello")
    yield "a broken test", pushed.github(), RED
    (pushed.root / "servers/hello/tests/test_broken.py").unlink()
    yield from _gitlab(pushed)
    pushed.factory("ci", "--release")
    pushed.push("A workflow for releases")
    pushed.factory("release", "apply")
    pushed.push("Released")
    tags = [tag for tag in git(pushed.root, "tag").split() if tag.startswith("hello-v")]
    yield f"release {tags}", pushed.release(tags[0]), _RELEASE


def _gitlab(pushed: Pushed) -> Iterator[_Case]:
    """The pipelines of GitLab: green, and red."""
    pushed.factory("ci", "--provider", "gitlab")
    pushed.push("For GitLab")
    yield "GitLab", pushed.gitlab(), _GITLAB
    broken_test(pushed, "hello")
    yield "GitLab, a broken test", pushed.gitlab(), _GITLAB_RED
    (pushed.root / "servers/hello/tests/test_broken.py").unlink()
    pushed.push("Mended")


def _short(pushed: Pushed) -> Iterator[_Case]:
    """One server, and green."""
    pushed.factory("new", "hello", "--template", "minimal")
    pushed.push("A server")
    yield "first server", pushed.github(), GITHUB


_Case = tuple[str, Mapping[str, JobResult], Mapping[str, str]]
# What the workspace is made with, and what is pushed then.
_ORIGINS: Mapping[str, tuple[tuple[str, ...], Callable[[Pushed], Iterator[_Case]]]] = {
    "wheels": ((), _whole),
    "a repository": (("--factory", "git+{clone}@{head}"), _short),
}


def git(folder: Path, *words: str) -> str:
    """What a command of git prints in a folder."""
    return _run(["git", *words], folder).strip()


def _run(command: list[str], folder: Path) -> str:
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command} ended in {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout
