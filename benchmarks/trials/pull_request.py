"""A pull request from a fork, played out in clones with the written workflow; and what its code could hand over once it runs.

Code in a server's test and in its build looks for secrets (variables, those of its parents, files), writes into histories and
into another server. The pull request itself brings an approval, or takes a rejection away. And whatever became of the machine
of a shard: shard results are forged before `fold` and `keep` take them. Nothing of it may arrive on the branch, and no secret in what
the jobs say. Each mutant takes one guard away, from outside, and the case that it guards against must turn red.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.exam.results import Outcome, judged
from benchmarks.trials.ci_simulator import JobResult, run_workflow
from benchmarks.trials.first_push import Pushed, git, prepare
from benchmarks.trials.mutants import existing
from mcpfactory_pipeline.base.hashing import hash_bytes
from mcpfactory_pipeline.base.ids import new_id
from mcpfactory_pipeline.plan.stage import candidate_id
from mcpfactory_pipeline.state.state import fold
from mcpfactory_pipeline.state.view import view_text

SECRET = "canary-5f1d2c"
_REQUEST = "7/merge"

# What code of a server tries while it is tested or built. It says what it got in words that carry the value, or the place.
_THIEF = """
import glob, json, os, pathlib
def tried():
    found = {}
    found["variables"] = [value for value in os.environ.values() if "canary" in value]
    for place in glob.glob("/proc/[0-9]*/environ"):
        try:
            found["parents"] = [word for word in open(place, "rb").read().decode(errors="replace").split("\\0") if "canary" in word] or found.get("parents")
        except OSError:
            pass
    for home in ("@HOME@",):
        try:
            found["files"] = (pathlib.Path(home) / ".netrc").read_text()
        except OSError:
            pass
    for name, words in (("pipeline/history/victim.jsonl", "planted"), ("servers/victim/src/planted.py", "planted = 1"), ("shard/history/victim.jsonl", "planted")):
        try:
            place = pathlib.Path("@WORK@") / name
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("a") as file:
                file.write(words + "\\n")
            found["wrote " + name] = True
        except OSError:
            pass
    return "LOOT " + json.dumps({key: value for key, value in found.items() if value})
"""


@dataclass(frozen=True)
class ForkScenario:
    """A workspace whose branch has two servers in staging and a rejection, and what a run of one change to `hello` handed over."""

    pushed: Pushed
    folder: Path
    plan: JobResult

    def copy(self, name: str, given: Mapping[str, str]) -> ForkScenario:
        """The same with a repository of its own, for a case; `given` are variables of its jobs."""
        origin = self.folder / "origins" / f"{name}.git"
        shutil.rmtree(origin, ignore_errors=True)
        shutil.copytree(self.pushed.runner.origin, origin)
        runner = replace(self.pushed.runner, origin=origin, given={**self.pushed.runner.given, **given})
        return replace(self, pushed=replace(self.pushed, runner=runner))

    @property
    def workflow(self) -> Path:
        """The file that `init` wrote."""
        return self.pushed.root / ".github/workflows/mcpfactory.yml"

    def head(self) -> str:
        """The commit of the branch."""
        return git(self.pushed.runner.origin, "rev-parse", "main")

    def request(self, change: Callable[[Path], None], *, only: tuple[str, ...] = ()) -> dict[str, JobResult]:
        """The jobs for a pull request with a change that somebody made in a fork."""
        fork = self.folder / "fork"
        shutil.rmtree(fork, ignore_errors=True)
        git(self.folder, "clone", "-q", self.pushed.runner.origin.as_uri(), str(fork))
        change(fork)
        git(fork, "add", "-A")
        git(fork, "-c", "user.name=mallory", "-c", "user.email=m@example.org", "commit", "-qm", "A small correction")
        git(fork, "push", "-q", "origin", f"HEAD:refs/heads/{_REQUEST}")
        return run_workflow(self.pushed.runner, self.workflow, f"refs/pull/{_REQUEST}", base="main", only=only)

    def push(self, change: Callable[[Path], None]) -> dict[str, JobResult]:
        """The first job for a push to the branch, as it comes of a merge that nobody looked at."""
        place = self.folder / "merged"
        shutil.rmtree(place, ignore_errors=True)
        git(self.folder, "clone", "-q", self.pushed.runner.origin.as_uri(), str(place))
        change(place)
        git(place, "-c", "user.name=ada", "-c", "user.email=ada@example.org", "commit", "-qam", "A small correction")
        git(place, "push", "-q", "origin", "HEAD:main")
        return run_workflow(self.pushed.runner, self.workflow, "refs/heads/main", only=("plan",))

    def hand_over(self, change: Callable[[list[dict[str, Any]], Path], list[dict[str, Any]]]) -> dict[str, JobResult]:
        """`fold` and `keep` of the branch, of what a shard handed over after somebody changed it."""
        shard = self.folder / "artifacts" / "shard-1"
        shutil.rmtree(shard, ignore_errors=True)
        shutil.copytree(self.folder / "handed", shard)
        file = shard / "history" / "hello.jsonl"
        events = [json.loads(line) for line in file.read_text().splitlines()]
        file.write_text("".join(json.dumps(event) + "\n" for event in change(events, shard)))
        after = {
            "plan": {"result": "success", "outputs": self.plan.outputs},
            "shard": {"result": "success", "outputs": {}},
        }
        return run_workflow(self.pushed.runner, self.workflow, "refs/heads/main", only=("fold", "keep"), after=after)


def _approval(events: list[dict[str, Any]], _shard: Path) -> list[dict[str, Any]]:
    last = events[-1]
    about = {"channel": "production", "candidate": last.get("candidate"), "version": "0.1.0", "reason": "fine"}
    head = {"id": new_id(last["id"]), "at": last["at"], "actor": "ada", "event": "approved"}
    return [*events, {**head, **about}]


def _another(events: list[dict[str, Any]], shard: Path) -> list[dict[str, Any]]:
    (shard / "history" / "victim.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    return events


def _old_run(events: list[dict[str, Any]], _shard: Path) -> list[dict[str, Any]]:
    run = new_id()
    return [{**event, "run": run} for event in events]


def _back_door(events: list[dict[str, Any]], shard: Path) -> list[dict[str, Any]]:
    """Other files under the id of a candidate that passed, which people may have approved."""
    data = b"a back door"
    (shard / "files" / hash_bytes(data).removeprefix("sha256:")).write_bytes(data)
    for event in events:
        if event.get("built"):
            event["built"]["files"] = dict.fromkeys(event["built"]["files"], hash_bytes(data))
    return events


def _other_bytes(events: list[dict[str, Any]], shard: Path) -> list[dict[str, Any]]:
    built = next(event["built"]["files"] for event in events if event.get("built"))
    for content in built.values():
        (shard / "files" / content.removeprefix("sha256:")).write_bytes(b"a back door")
    return events


def _own_approval(fork: Path) -> None:
    _rewrite(fork, "hello", lambda events: _approval(events, fork))


def _no_rejection(fork: Path) -> None:
    _rewrite(fork, "victim", lambda events: [event for event in events if event["event"] != "rejected"])


def _own_candidate(place: Path) -> None:
    """The last run of hello once more, about another candidate, and an approval of that."""

    def add(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        run, last = new_id(events[-1]["id"]), str(events[-1]["id"])
        built = next(event for event in events if event.get("built"))
        files = dict.fromkeys(built["built"]["files"], hash_bytes(b"a back door"))
        made = candidate_id(files)
        again = []
        for event in (one for one in events if one.get("run") == built["run"]):
            again.append({**event, "id": (last := new_id(last)), "run": run})
            again[-1] |= {"candidate": made} if "candidate" in event else {}
            again[-1] |= {"built": {**event["built"], "files": files}} if "built" in event else {}
        return _approval([*events, *again], place)

    _rewrite(place, "hello", add)


def _rewrite(fork: Path, server: str, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    """Another history, and the state that follows from it: neither contradicts the other."""
    file = fork / f"pipeline/history/{server}.jsonl"
    events = change([json.loads(line) for line in file.read_text().splitlines()])
    file.write_text("".join(json.dumps(event) + "\n" for event in events))
    (fork / f"pipeline/state/{server}.json").write_text(view_text(fold(server, events)))


def _thief(scene: ForkScenario) -> Callable[[Path], None]:
    shard = scene.folder / "jobs" / "shard-1"
    text = _THIEF.replace("@HOME@", str(shard / "home")).replace("@WORK@", str(shard / "work"))

    def change(fork: Path) -> None:
        server = fork / "servers/hello"
        (server / "tests/test_thief.py").write_text(f"{text}\ndef test_it():\n    raise AssertionError(tried())\n")

    return change


def _refused(scene: ForkScenario, change: Callable[[Path], None]) -> Iterator[str]:
    """A pull request that must end in its first job."""
    ran = scene.request(change, only=("plan",))
    if ran["plan"].result != "failure":
        yield "the pull request is not refused"


def _push_refused(scene: ForkScenario, change: Callable[[Path], None]) -> Iterator[str]:
    """A push after which the first job must be red, for what it brings."""
    ran = scene.push(change)["plan"]
    if ran.result != "failure" or "push what was built first" not in ran.log:
        yield f"the push is not refused: plan ended in {ran.result}: {ran.log[-300:]}"


def _nothing_kept(
    scene: ForkScenario, change: Callable[[list[dict[str, Any]], Path], list[dict[str, Any]]]
) -> Iterator[str]:
    """A shard result that must be refused, and leave the branch as it is."""
    before = scene.head()
    ran = scene.hand_over(change)
    if ran["fold"].result != "failure" or "refused" not in ran["fold"].log:
        yield f"fold ended in {ran['fold'].result}: {ran['fold'].log[-300:]}"
    if ran["keep"].result != "skipped" or scene.head() != before:
        yield f"keep: {ran['keep'].result}, and the branch {'moved' if scene.head() != before else 'stays'}"


def _taken(scene: ForkScenario) -> Iterator[str]:
    """The same shard result as it was handed over: guards that refuse everything would be no guards."""
    before = scene.head()
    ran = scene.hand_over(lambda events, _shard: events)
    if {name: one.result for name, one in ran.items()} != {
        "fold": "success",
        "keep": "success",
    } or scene.head() == before:
        yield "\n".join(one.log[-1500:] for one in ran.values())


def _robbed(scene: ForkScenario) -> Iterator[str]:
    """Code in a test that looks for secrets and writes where it should not."""
    before = scene.head()
    ran = scene.request(_thief(scene))
    told = "\n".join(one.log for one in ran.values())
    for file in (scene.folder / "artifacts").rglob("*"):
        told += file.read_text(errors="replace") if file.is_file() else ""
    if "LOOT {" not in told:
        yield f"the thief did not run: {told[-1500:]}"
    if SECRET in told:
        yield "a secret was read"
    if "wrote " in told.partition("LOOT {")[2].partition("}")[0] or '"planted' in told:
        yield "the code of hello wrote into the workspace"
    if ran["keep"].result != "skipped" or scene.head() != before:
        yield "a pull request moved the branch"


CASES: dict[str, Callable[[ForkScenario], Iterator[str]]] = {
    "as it was handed over": _taken,
    "a test that steals and plants": _robbed,
    "a pull request with its own approval": lambda scene: _refused(scene, _own_approval),
    "a pull request without a rejection": lambda scene: _refused(scene, _no_rejection),
    "a push with a candidate and its approval": lambda scene: _push_refused(scene, _own_candidate),
    "a shard result with an approval": lambda scene: _nothing_kept(scene, _approval),
    "a shard result with another server": lambda scene: _nothing_kept(scene, _another),
    "a shard result of another run": lambda scene: _nothing_kept(scene, _old_run),
    "a shard result with an invented candidate": lambda scene: _nothing_kept(scene, _back_door),
    "a shard result with other bytes": lambda scene: _nothing_kept(scene, _other_bytes),
}

# guard → the case that must turn red without it, and what replaces the guard in each process of the jobs.
MUTANTS: dict[str, tuple[str, str, str]] = {
    "what a pull request brings is looked at": (
        "a pull request with its own approval", "delivery.ci.pull_request.refusals", "lambda *_, **_options: []",
    ),
    "what a push brings is looked at": (
        "a push with a candidate and its approval", "delivery.ci.pull_request._about_new_candidates", "lambda *_: []",
    ),
    "events of the base must be there": (
        "a pull request without a rejection", "state.verify.histories_missing_events", "lambda *_, **_options: []",
    ),
    "a job brings events of stages only": (
        "a shard result with an approval", "delivery.ci.admission.RUN_EVENTS", "real | {'approved'}",
    ),
    "a job is about what it was assigned": (
        "a shard result with another server", "delivery.ci.fold.ShardResult",
        "lambda folder, servers: real(folder, (*servers, 'victim'))",
    ),
    "a job brings its run": ("a shard result of another run", "delivery.ci.admission._of_run", "lambda *_: None"),
    "a candidate has the id of its files": (
        "a shard result with an invented candidate", "delivery.ci.admission._may_build", "lambda *_: None",
    ),
    "bytes have the hashes of the events": (
        "a shard result with other bytes", "delivery.ci.bundle._checked", "lambda file, *_: file.read_bytes()",
    ),
    "server code runs in a sandbox": ("a test that steals and plants", "", ""),
}  # fmt: skip

_PATCH = """
import importlib.util, sys
class _Patched:
    def find_spec(self, name, path=None, target=None):
        if name != "mcpfactory_pipeline.{module}":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module
        def patched(m):
            run(m)
            m.{name} = eval({value!r}, {{"real": m.{name}}})
        spec.loader.exec_module = patched
        return spec
sys.meta_path.insert(0, _Patched())
"""


def run(folder: Path, times: int, seed: int) -> Outcome:
    """All cases, then each mutant with its case; `times` and the seed change nothing."""
    del times, seed
    for _, place, _ in MUTANTS.values():
        if place:
            existing(place)  # a patch of nothing would be no mutant
    scene = _prepared(folder)
    faults, green = [], []
    for name, case in CASES.items():
        found = list(case(scene.copy("case", {})))
        print(
            f"{name}: {'; '.join(found) or 'nothing arrives' if case is not _taken else found or 'taken'}", flush=True
        )
        faults += [f"{name}: {fault}" for fault in found]
    for guard, (name, place, value) in MUTANTS.items():
        found = list(CASES[name](_mutant(scene, place, value)))
        print(f"without “{guard}”: {'red: ' + found[0][:160] if found else 'GREEN'}", flush=True)
        green += [] if found else [guard]
    figure = (
        f"{len(CASES)} cases, {len(faults)} not as promised; {len(MUTANTS)} mutants, {len(MUTANTS) - len(green)} red"
    )
    return judged(figure, good=not faults and not green)


def _mutant(scene: ForkScenario, guard: str, value: str) -> ForkScenario:
    """A copy whose jobs lack a guard: a module is patched as it is loaded, or the configuration says to use no sandbox."""
    if not guard:
        return _without_sandbox(scene.copy("mutant", {}))
    module, _, name = guard.rpartition(".")
    place = scene.folder / "mutant"
    place.mkdir(exist_ok=True)
    (place / "sitecustomize.py").write_text(_PATCH.format(module=module, name=name, value=value))
    return scene.copy("mutant", {"PYTHONPATH": str(place)})


def _without_sandbox(scene: ForkScenario) -> ForkScenario:
    place = scene.folder / "without-sandbox"
    shutil.rmtree(place, ignore_errors=True)
    git(scene.folder, "clone", "-q", scene.pushed.runner.origin.as_uri(), str(place))
    file = place / "mcpfactory.toml"
    file.write_text(file.read_text().replace("[pipeline]\n", '[pipeline]\nisolation = "none"\n', 1))
    git(place, "-c", "user.name=ada", "-c", "user.email=ada@example.org", "commit", "-qam", "No sandbox")
    git(place, "push", "-q", "origin", "HEAD:main")
    return scene


def _prepared(folder: Path) -> ForkScenario:
    """The branch with two servers in staging and a rejection, and what a run of a change to `hello` hands over, in `handed`."""
    pushed = prepare(folder, shared=True)
    secrets = {"GITHUB_TOKEN": SECRET, "PYPI_TOKEN": SECRET, "UV_PUBLISH_TOKEN": SECRET}
    pushed = replace(pushed, runner=replace(pushed.runner, given=secrets, home={".netrc": SECRET}))
    for name in ("hello", "victim"):
        pushed.factory("new", name, "--template", "minimal")
    pushed.push("Two servers")
    ran = pushed.github()
    assert {one.result for one in ran.values()} == {"success"}, "\n".join(one.log for one in ran.values())
    git(pushed.root, "pull", "-q", "--rebase", "origin", "main")
    pushed.factory("pipeline", "reject", "victim", "--channel", "production", "--reason", "it leaks")
    with (pushed.root / "servers/hello/README.md").open("a") as file:
        file.write("\nMore words.\n")
    pushed.push("A rejection, and a change")
    workflow = pushed.root / ".github/workflows/mcpfactory.yml"
    ran = run_workflow(pushed.runner, workflow, "refs/heads/main", only=("plan", "shard"))
    assert {one.result for one in ran.values()} == {"success"}, "\n".join(one.log for one in ran.values())
    shutil.copytree(folder / "artifacts" / "shard-1", folder / "handed")
    return ForkScenario(pushed, folder, ran["plan"])
