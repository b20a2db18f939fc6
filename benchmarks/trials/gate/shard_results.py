"""What a job without rights hands over, changed by the code of a server that ran in it.

In each row the workspace does not know alpha's newest run yet. As the job hands it over it is taken (an honest row); each other row
changes one thing of it, and must be refused for that.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from benchmarks.trials.gate.attempt import Act, Attempt
from benchmarks.trials.gate.workspace import AttackedWorkspace, Done
from mcpfactory_pipeline.base.hashing import hash_named_texts
from mcpfactory_pipeline.base.ids import format_time, new_id, utc_now
from mcpfactory_pipeline.state.event_schema import EVENT_KINDS


@dataclass(slots=True)
class _Job:
    """What the job of alpha's newest run hands over, in a workspace that does not know that run; it may be changed before it is folded."""

    space: AttackedWorkspace
    folder: Path
    run: str
    new: str

    def file(self, name: str = "alpha") -> Path:
        """The history of a server that the job hands over."""
        return self.folder / "history" / f"{name}.jsonl"

    def add(self, *events: Mapping[str, Any], name: str = "alpha") -> None:
        """Adds events to a history."""
        before = self.file(name).read_text() if self.file(name).exists() else ""
        self.file(name).write_text(before + _lines(events))

    def change(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Puts other events in the place of those of the run."""
        events = [json.loads(line) for line in self.file().read_text().splitlines()]
        self.file().write_text(_lines(change(one) if one.get("run") == self.run else one for one in events))

    def event(self, **members: Any) -> dict[str, Any]:
        """An event that the job says happened just now."""
        return {**self.space.event(), "at": format_time(utc_now()), **members}

    def fold(self, *words: str) -> Done:
        """Folds it as the workflow does, for the job's run and server."""
        return self.space.run("ci", "fold", str(self.folder), "--run", self.run, "--server", "alpha", *words)


def _lines(events: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(event, sort_keys=True) + "\n" for event in events)


def _job(space: AttackedWorkspace) -> _Job:
    run, new = str(space.events()[-1]["run"]), space.new
    job = _Job(space, space.root.parent / f"shard-result-{space.root.name}", run, new)
    done = space.run("ci", "pack", str(job.folder), "alpha")
    assert done.code == 0, done.text
    space.git("checkout", "-q", "HEAD~1", "--", "pipeline/state", "pipeline/history")
    shutil.rmtree(space.root / "pipeline/artifacts/alpha" / new)
    return job


def _refused(job: _Job, code: str, name: str = "alpha") -> Iterator[str]:
    """Folds it: it has to be refused with this code, and nothing of the server taken."""
    space = job.space
    watched = (space.history(name), space.state(name), *space.root.glob(f"pipeline/channels/*/simple/{name}-mcp/*"))
    before = [file.read_bytes() if file.exists() else None for file in watched]
    done = job.fold()
    if done.code != 1 or f"{name}: refused, " not in done.out:
        yield f"fold ended with {done.code}, and refused nothing of {name}"
    elif code not in done.out:
        yield f"it is refused, but not for {code!r}: {done.out[:200]}"
    if [file.read_bytes() if file.exists() else None for file in watched] != before:
        yield f"history, state or channels of {name} are others"
    if (space.root / "pipeline/artifacts/alpha" / job.new).exists() and name == "alpha":
        yield "files of the candidate were taken"


def _decision(space: AttackedWorkspace, kind: str, **more: Any) -> Iterator[str]:
    job = _job(space)
    about = {"channel": "production", "reason": "by a job", "candidate": job.new, "version": "0.1.1"}
    job.add(job.event(event=kind, **{**about, **more}))
    yield from _refused(job, "kind: " if kind in EVENT_KINDS else "history: ")


def _only_decision(kind: str, **more: Any) -> Act:
    """Make an attempt with a job that records a decision. Only people may make decisions."""

    def act(space: AttackedWorkspace) -> Iterator[str]:
        yield from _decision(space, kind, **more)

    act.__doc__ = f"A job records the decision `{kind}`."
    return act


def approval(space: AttackedWorkspace) -> Iterator[str]:
    """A job brings an approval by Grace, and somebody promotes."""
    new = space.new
    yield from _decision(space, "approved")
    if space.run("pipeline", "promote", "alpha", "--channel", "production", "--candidate", new).code == 0:
        yield "promoted on the job's approval"


def retirement(space: AttackedWorkspace) -> Iterator[str]:
    """A job retires the server."""
    job = _job(space)
    job.add(job.event(event="retired", reason="by a job"))
    yield from _refused(job, "kind: ")


def other_server(space: AttackedWorkspace) -> Iterator[str]:
    """The job of alpha brings a decision about beta."""
    job = _job(space)
    about = {"channel": "production", "candidate": space.offered(name="beta"), "version": "0.1.0", "reason": "x"}
    job.add(*space.events("beta"), job.event(event="held", **about), name="beta")
    yield from _refused(job, "which its job was not assigned", "beta")


def unknown_server(space: AttackedWorkspace) -> Iterator[str]:
    """The job of alpha brings a server that the workspace does not have."""
    job = _job(space)
    job.add(*space.events("beta"), name="gamma")
    yield from _refused(job, "which its job was not assigned", "gamma")


def _backdoor(job: _Job) -> tuple[str, dict[str, str]]:
    """A wheel with a back door, among the files of a job; gives the candidate that it would be, and its files."""
    wheel = job.space.wheel("staging")
    data = BytesIO()
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(data, "w") as new:
        for entry in old.infolist():
            new.writestr(entry, old.read(entry))
        new.writestr("alpha_mcp/door.py", "DOOR = 'open'\n")
    files = {wheel.name: f"sha256:{hashlib.sha256(data.getvalue()).hexdigest()}"}
    (job.folder / "files" / files[wheel.name].removeprefix("sha256:")).write_bytes(data.getvalue())
    return hash_named_texts(files).removeprefix("sha256:")[:16], files


def _invented(job: _Job, *, tested: bool, candidate: str = "") -> None:
    """Puts a candidate with a back door in the place of the one that the run built, with or without its test."""
    own, files = _backdoor(job)

    def change(event: dict[str, Any]) -> dict[str, Any]:
        event |= {"candidate": candidate or own} if "candidate" in event else {}
        return event | ({"built": {**event["built"], "files": files}} if "built" in event else {})

    job.change(change)
    if not tested:
        lines = [line for line in job.file().read_text().splitlines() if f'"run":"{job.run}"' in line]
        head = job.file().read_text().partition(lines[0])[0]
        job.file().write_text(head + "".join(f"{line}\n" for line in lines if '"stage":"test"' not in line))


def invented_candidate(space: AttackedWorkspace) -> Iterator[str]:
    """A job stages a candidate with a back door that no test checked."""
    job = _job(space)
    _invented(job, tested=False)
    yield from _refused(job, "order: ")


def invented_id(space: AttackedWorkspace) -> Iterator[str]:
    """A job brings a back door under the id of the candidate that people know."""
    job = _job(space)
    _invented(job, tested=True, candidate=job.new)
    yield from _refused(job, "candidate: ")


def unknown_candidate(space: AttackedWorkspace) -> Iterator[str]:
    """A job says that checks of a candidate passed that nobody built, and stages it."""
    job, made = _job(space), "0123456789abcdef"
    job.change(lambda event: event if "candidate" not in event or "built" in event else {**event, "candidate": made})
    yield from _refused(job, "candidate: ")


def failed_check(space: AttackedWorkspace) -> Iterator[str]:
    """A job stages a candidate whose test failed."""
    job = _job(space)
    job.change(
        lambda event: {**event, "outcome": "failed"} if event["stage"] == "test" and "outcome" in event else event
    )
    yield from _refused(job, "order: ")


def staging_names_production(space: AttackedWorkspace) -> Iterator[str]:
    """A job's stage `staging` says that it moved production."""
    job = _job(space)
    job.change(lambda event: {**event, "channel": "production"} if "channel" in event else event)
    yield from _refused(job, "channel: ")


def older_run(space: AttackedWorkspace) -> Iterator[str]:
    """A job brings events of another run than the one that it was assigned."""
    job = _job(space)
    job.run = new_id()
    yield from _refused(job, "run: ")


def from_the_future(space: AttackedWorkspace) -> Iterator[str]:
    """A job says that the candidate was staged a year from now."""
    job = _job(space)
    job.change(lambda event: {**event, "at": event["at"].replace(event["at"][:4], str(int(event["at"][:4]) + 1), 1)})
    yield from _refused(job, "history: ")


def other_bytes(space: AttackedWorkspace) -> Iterator[str]:
    """A job's files have other bytes than their names say."""
    job = _job(space)
    for file in (job.folder / "files").iterdir():
        file.write_bytes(file.read_bytes() + b"x")
    yield from _refused(job, "files: ")


def no_files(space: AttackedWorkspace) -> Iterator[str]:
    """A job hands over that it built a candidate, and not the files."""
    job = _job(space)
    shutil.rmtree(job.folder / "files")
    yield from _refused(job, "files: ")


def way_out(space: AttackedWorkspace) -> Iterator[str]:
    """A job names a file of its candidate and a folder of logs that lead out of the workspace."""
    job = _job(space)
    (digest,) = _backdoor(job)[1].values()
    files = {"../../../../escaped.whl": digest}
    made = hash_named_texts(files).removeprefix("sha256:")[:16]
    job.change(
        lambda event: (
            {**event, "candidate": made, "built": {**event["built"], "files": files}} if "built" in event else event
        )
    )
    (job.folder / "logs" / "..%2f..%2fescaped").mkdir(parents=True)
    yield from _refused(job, "candidate: ")
    if list(space.root.parent.glob("escaped*")) or list(space.root.rglob("escaped*")):
        yield "a file was written outside"


def links(space: AttackedWorkspace) -> Iterator[str]:
    """In a job's folder, a file and a log are links to a file of the machine."""
    secret = space.root.parent / f"secret-{space.root.name}"
    secret.write_text("top-secret-text")
    job = _job(space)
    for place in (*(job.folder / "files").iterdir(), *(job.folder / "logs/alpha").iterdir()):
        place.unlink()
        place.symlink_to(secret)
    yield from _refused(job, "files: ")
    for path in (space.root / "pipeline").rglob("*"):
        if path.is_file() and b"top-secret-text" in path.read_bytes():
            yield f"{path.name} has the text of another file"


def replayed(space: AttackedWorkspace) -> Iterator[str]:
    """A job repeats an event that the workspace has, with other words."""
    job = _job(space)
    first = job.file().read_text().splitlines()[0]
    job.file().write_text(job.file().read_text().replace(first, first.replace("never run", "as you like")))
    yield from _refused(job, "changed: ")


def broken_result(space: AttackedWorkspace) -> Iterator[str]:
    """A job's history is no JSON, and names things of other types."""
    job = _job(space)
    job.file().write_text('{"event": 7, "id": []}\n[1]\n{"event": "stage.finished"}\n')
    yield from _refused(job, "history: ")


def unsaid(space: AttackedWorkspace) -> Iterator[str]:
    """Folds what a job hands over without saying of which run and server it is."""
    job = _job(space)
    before = space.history().read_text()
    if space.run("ci", "fold", str(job.folder)).code == 0 or space.history().read_text() != before:
        yield "taken, whoever it is of"


def held_meanwhile(space: AttackedWorkspace) -> Iterator[str]:
    """Somebody holds staging while the job runs that stages the newer candidate."""
    job = _job(space)
    space.run("pipeline", "hold", "alpha", "--channel", "staging", "--reason", "audit")
    yield from _refused(job, "channel: ")


def honest_result(space: AttackedWorkspace) -> Iterator[str]:
    """Folds what a job hands over, twice: the newer candidate is in staging, with its files, and the second time adds nothing."""
    job = _job(space)
    done = job.fold()
    if done.code or space.offered("staging") != job.new:
        yield f"not taken: {done.text}"
    events = len(space.events())
    if job.fold().code or len(space.events()) != events:
        yield "the second time is another"
    if space.run("pipeline", "verify").code:
        yield "verify finds something in what was taken"


ATTEMPTS: Final = (
    Attempt("a shard result as it was handed over", "taken", honest_result, honest=True),
    Attempt("approval in a shard result", "not taken", approval),
    Attempt("promotion in a shard result", "not taken", _only_decision("promoted")),
    Attempt("hold lifted in a shard result", "not taken", _only_decision("released")),
    Attempt("hold in a shard result", "not taken", _only_decision("held")),
    Attempt("retirement in a shard result", "not taken", retirement),
    Attempt(
        "waiver in a shard result",
        "not taken",
        _only_decision("waived", rule="tool-calls.error-text", until="2030-01-01", person="Grace"),
    ),
    Attempt("rejection in a shard result", "not taken", _only_decision("rejected")),
    Attempt(
        "`published` in a shard result",
        "not taken",
        _only_decision("published", target="pypi", digest="x", evidence={}),
    ),
    Attempt("decision about another server in a shard result", "not taken", other_server),
    Attempt("another server in a shard result", "not taken", unknown_server),
    Attempt("forged candidate in a shard result", "no channel offers it", invented_candidate),
    Attempt("back door under a candidate's id in a shard result", "no channel offers it", invented_id),
    Attempt("checks of a candidate that nobody built", "staging stays", unknown_candidate),
    Attempt("failed check, and staged, in a shard result", "staging stays", failed_check),
    Attempt("`staging` moves production in a shard result", "production stays", staging_names_production),
    Attempt("shard result of another run", "fold refuses", older_run),
    Attempt("shard result from the future", "fold refuses", from_the_future),
    Attempt("shard result with other bytes", "fold refuses", other_bytes),
    Attempt("shard result without files", "fold refuses", no_files),
    Attempt("shard result that leads out of the workspace", "nothing is written outside", way_out),
    Attempt("shard result with links", "not followed", links),
    Attempt("replayed events with other words", "not taken", replayed),
    Attempt("shard result that is no shard result", "fold refuses by name", broken_result),
    Attempt("shard result of nobody knows what", "fold refuses", unsaid),
    Attempt("channel held while its job ran", "staging stays", held_meanwhile),
)
