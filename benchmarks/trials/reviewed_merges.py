"""Changes on their way to a protected branch: each job of the written workflow by hand, in a fresh clone with an empty home.

A pull request that lowers a policy is told and not refused; one with a broken test is red. Two that are green alone and
red together are red in the merge queue. Results of jobs come in a pull request, which nobody else may bring.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.exam.results import Outcome, judged
from benchmarks.trials.ci_simulator import JobResult, run_workflow
from benchmarks.trials.first_push import GITHUB, NOTHING, Pushed, faults, git, prepare

_GREEN = {**GITHUB, "keep": "skipped"}
_RED = {"plan": "success", "shard-1": "failure", "fold": "failure", "keep": "skipped"}
_PLAN, _REFUSED = {"plan": "success"}, {"plan": "failure"}
_RESULTS = "mcpfactory-results"
_WAIVER = '[[waivers]]\nrule = "descriptions.tool"\nperson = "Ada"\nreason = "later"\nuntil = 2031-01-31\n'
_Change = Callable[[Path], None]


@dataclass(frozen=True)
class Repository:
    """A repository with a protected branch, and the ways of a change to it."""

    pushed: Pushed
    folder: Path

    def branch(self, name: str, *changes: _Change, base: str = "main") -> str:
        """Push a branch with one merge commit per change, as the provider makes them; return its commit."""
        clone = self.folder / "clone"
        shutil.rmtree(clone, ignore_errors=True)
        git(self.folder, "clone", "-q", "--branch", base, self.pushed.runner.origin.as_uri(), str(clone))
        for key, value in (("user.name", "grace"), ("user.email", "grace@example.org")):
            git(clone, "config", key, value)
        for change in changes:
            git(clone, "switch", "-q", "-C", "change")
            change(clone)
            git(clone, "add", "-A")
            git(clone, "commit", "-qm", "A change")
            git(clone, "switch", "-q", base)
            git(clone, "merge", "-q", "--no-ff", "-m", "Merge", "change")
        git(clone, "push", "-q", "--force", "origin", f"HEAD:refs/heads/{name}")
        return git(clone, "rev-parse", "HEAD")

    def jobs(self, ref: str, **options: Any) -> dict[str, JobResult]:
        """Run the workflow of that ref: a pull request with `base`, a merge group with `queue`."""
        text = git(self.pushed.runner.origin, "show", f"{ref.split('/', 2)[2]}:.github/workflows/mcpfactory.yml")
        (self.folder / "workflow.yml").write_text(text)
        return run_workflow(self.pushed.runner, self.folder / "workflow.yml", ref, **options)

    def request(self, *changes: _Change, **options: Any) -> dict[str, JobResult]:
        """Run the jobs of a pull request with these changes."""
        self.branch("7/merge", *changes)
        return self.jobs("refs/pull/7/merge", base="main", **options)


def _write(place: str, text: str) -> _Change:
    def change(root: Path) -> None:
        file = root / place
        before = file.read_text() if file.exists() and place.endswith(".toml") else ""
        file.write_text(before + text)

    return change


_LOWER = _write("mcpfactory.toml", "\n[waivers]\nlimit = 99\n")
_WAIVE = _write("servers/hello/waivers.toml", _WAIVER)
_BROKEN = _write("servers/hello/tests/test_broken.py", "def test_it():\n    assert 1 == 2\n")
# Green alone, red together: the test of one change refuses the file of the other.
_LONELY = _write(
    "servers/hello/tests/test_lonely.py",
    'from pathlib import Path\n\n\ndef test_it():\n    assert not Path(__file__).with_name("test_other.py").exists()\n',
)
_OTHER = _write("servers/hello/tests/test_other.py", "def test_it():\n    pass\n")


def run(folder: Path, times: int, seed: int) -> Outcome:
    """Run all cases; `times` and the seed change nothing."""
    del times, seed
    pushed = prepare(folder, shared=True)
    (folder / "gh.sh").write_text(f'gh() {{ echo "$*" >> "{folder}/gh.log"; if [ "$2" = list ]; then echo 0; fi; }}\n')
    pushed = replace(pushed, runner=replace(pushed.runner, given={"BASH_ENV": str(folder / "gh.sh")}))
    pushed.factory("new", "hello", "--template", "minimal")
    pushed.push("A server")
    repository, found, count = Repository(pushed, folder), list[str](), 0
    for what, ran, wanted, *more in _cases(repository):
        count += 1
        found += faults(what, ran, wanted)
        found += [f"{what}: {fault}" for fault in more if fault]
    for fault in found:
        print(fault)
    return judged(f"{count} ways of a change to a protected branch, {len(found)} not as promised", good=not found)


def _cases(repository: Repository) -> Iterator[tuple[Any, ...]]:
    origin = repository.pushed.runner.origin
    yield "a push", repository.jobs("refs/heads/main"), GITHUB
    main = git(origin, "rev-parse", "main")
    ran = repository.request(_LOWER, _WAIVE)
    yield "a lowered policy", ran, _GREEN, _lacks(ran, "waivers.limit: 10 → 99", "new waiver")
    yield "a broken test", repository.request(_BROKEN), _RED
    yield "the first of two", repository.request(_LONELY), _GREEN
    yield "the second of two", repository.request(_OTHER), _GREEN
    first = repository.branch("queue/1", _LONELY)
    repository.branch("queue/2", _OTHER, base="queue/1")
    yield "both in a merge queue", repository.jobs("refs/heads/queue/2", queue=first), _RED
    repository.branch("queue/2", _LOWER, base="queue/1")
    ran = repository.jobs("refs/heads/queue/2", queue=first, only=("plan",))
    yield "a lowered policy in a merge queue", ran, _PLAN, _lacks(ran, "waivers.limit: 10 → 99")
    if git(origin, "rev-parse", "main") != main:
        yield "the branch", {}, {}, "it moved before a merge"
    yield from _results(repository)


def _results(repository: Repository) -> Iterator[tuple[Any, ...]]:
    """Results of jobs in a pull request: from the repository itself, from a fork, with an approval, in a merge queue."""
    pushed, origin = repository.pushed, repository.pushed.runner.origin
    git(pushed.root, "pull", "-q", "--rebase", "origin", "main")
    config = pushed.root / "mcpfactory.toml"
    config.write_text(config.read_text().replace("[ci]\n", '[ci]\npush = "pull-request"\n', 1))
    pushed.factory("ci")
    _OTHER(pushed.root)
    pushed.push("Results in pull requests")
    main = git(origin, "rev-parse", "main")
    yield "a push to a protected branch", repository.jobs("refs/heads/main"), GITHUB, _not_opened(repository)
    if git(origin, "rev-parse", "main") != main:
        yield "the branch", {}, {}, "it moved without a pull request"
    head = {"only": ("plan",), "head": _RESULTS}

    def results(root: Path) -> None:
        git(root, "fetch", "-q", "origin", _RESULTS)
        git(root, "checkout", "-q", "FETCH_HEAD", "--", "pipeline")

    def approved(root: Path) -> None:
        results(root)
        pushed_there = replace(pushed, root=root)
        pushed_there.factory("pipeline", "approve", "hello", "--channel", "production")

    yield "results of jobs", repository.request(results, **head), _PLAN
    for what, change, options, words in (
        ("results from a fork", results, {"repository": "mallory/servers"}, "stage.finished by"),
        ("results under another name", results, {"head": "feature"}, "stage.finished by"),
        ("results with an approval", approved, {}, "approved by"),
    ):
        ran = repository.request(change, **{**head, **options})
        yield what, ran, _REFUSED, "" if words in ran["plan"].log else f"{words!r} is not refused: {ran['plan'].log}"
    repository.branch("queue/1", results)
    ran = repository.jobs("refs/heads/queue/1", queue=main, only=("plan",))
    yield "results in a merge queue", ran, _PLAN
    git(origin, "branch", "-f", "main", "queue/1")
    yield "after the merge", repository.jobs("refs/heads/main"), NOTHING


def _lacks(ran: Mapping[str, JobResult], *words: str) -> str:
    told = ran["plan"].summary.replace("\\", "")
    return "; ".join(f"the summary lacks {one!r}: {told}" for one in words if one not in told)


def _not_opened(repository: Repository) -> str:
    log = repository.folder / "gh.log"
    told = log.read_text() if log.exists() else ""
    return "" if f"pr create --head {_RESULTS} --base main --fill" in told else f"no pull request was opened: {told}"
