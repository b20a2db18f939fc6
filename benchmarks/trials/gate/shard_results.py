"""What a job without rights hands over, changed by the code of a server that ran in it."""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from benchmarks.trials.gate.attempt import Attempt
from benchmarks.trials.gate.field import Field
from mcpfactory_pipeline.base.hashing import hash_record

__all__ = ["ATTEMPTS"]


def _packed(field: Field, name: str = "alpha") -> Path:
    """An honest shard result of a server, to be changed."""
    shard_result = field.root.parent / f"shard-result-{field.root.name}"
    shutil.rmtree(shard_result, ignore_errors=True)
    done = field.run("ci", "pack", str(shard_result), name)
    assert done.code == 0, done.text
    return shard_result


def _add(shard_result: Path, *events: Mapping[str, Any], name: str = "alpha") -> None:
    file = shard_result / "history" / f"{name}.jsonl"
    before = file.read_text() if file.exists() else ""
    file.write_text(before + "".join(json.dumps(event, sort_keys=True) + "\n" for event in events))


def _folded(field: Field, shard_result: Path, kind: str, name: str = "alpha") -> Iterator[str]:
    """Folds the shard result: no event of the kind may be new in the history, and production stays."""
    before, offered, count = field.offered(name=name), field.served(project=f"{name}-mcp"), field.count(kind, name)
    done = field.run("ci", "fold", str(shard_result))
    if done.code == 70 or "Traceback" in done.text:
        yield f"fold ended with {done.code}"
    if field.count(kind, name) > count:
        yield f"{kind} was taken from the shard result"
    if field.offered(name=name) != before or field.served(project=f"{name}-mcp") != offered:
        yield "production is another"


def _decision(field: Field, kind: str, **more: Any) -> Iterator[str]:
    shard_result = _packed(field)
    _add(shard_result, field.event(event=kind, channel="production", reason="by a shard result", **more))
    yield from _folded(field, shard_result, kind)


def approval(field: Field) -> Iterator[str]:
    """A shard result brings an approval by Grace."""
    yield from _decision(field, "approved", candidate=field.new, version="0.1.0")
    if field.run("pipeline", "promote", "alpha", "--channel", "production").code == 0:
        yield "promoted on the shard result's approval"


def promotion(field: Field) -> Iterator[str]:
    """A shard result says that the newer candidate was promoted."""
    yield from _decision(field, "promoted", candidate=field.new, version="0.1.0")


def release_of_hold(field: Field) -> Iterator[str]:
    """A shard result lifts a hold."""
    field.run("pipeline", "hold", "alpha", "--channel", "production", "--reason", "audit")
    yield from _decision(field, "released")


def retirement(field: Field) -> Iterator[str]:
    """A shard result retires the server."""
    shard_result = _packed(field)
    _add(shard_result, field.event(event="retired", reason="by a shard result"))
    yield from _folded(field, shard_result, "retired")


def waiver(field: Field) -> Iterator[str]:
    """A shard result says that somebody accepted a rule's findings."""
    yield from _decision(field, "waived", rule="behaviour.errors", until="2030-01-01", person="Grace")


def rejection(field: Field) -> Iterator[str]:
    """A shard result rejects a candidate, so that it cannot be promoted."""
    yield from _decision(field, "rejected", candidate=field.new, version="0.1.0")


def published(field: Field) -> Iterator[str]:
    """A shard result says that a candidate is published."""
    yield from _decision(
        field, "published", target="pypi", candidate=field.new, version="0.1.0", digest="x", evidence={}
    )


def other_server(field: Field) -> Iterator[str]:
    """A shard result of alpha's job brings an approval and a promotion of beta."""
    shard_result = _packed(field)
    candidate = field.offered(name="beta")
    words = {"channel": "production", "candidate": candidate, "version": "0.1.0", "reason": "x"}
    _add(shard_result, *field.events("beta"), field.event("beta", event="held", **words), name="beta")
    yield from _folded(field, shard_result, "held", "beta")


def unknown_server(field: Field) -> Iterator[str]:
    """A shard result brings a server that the workspace does not have."""
    shard_result = _packed(field)
    _add(shard_result, *field.events("beta"), name="gamma")
    field.run("ci", "fold", str(shard_result))
    if field.history("gamma").exists() or field.served("staging", "gamma-mcp"):
        yield "the workspace has another server"


def _backdoor(field: Field, shard_result: Path) -> tuple[str, dict[str, str]]:
    """A wheel with a back door as a candidate in a shard result; gives the candidate and its files."""
    wheel = field.wheel("staging")
    data = BytesIO()
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(data, "w") as new:
        for entry in old.infolist():
            new.writestr(entry, old.read(entry))
        new.writestr("alpha_mcp/door.py", "DOOR = 'open'\n")
    files = {wheel.name: f"sha256:{hashlib.sha256(data.getvalue()).hexdigest()}"}
    (shard_result / "files").mkdir(exist_ok=True)
    (shard_result / "files" / files[wheel.name].removeprefix("sha256:")).write_bytes(data.getvalue())
    return hash_record(files).removeprefix("sha256:")[:16], files


def _invented(field: Field, shard_result: Path, *, started: bool) -> str:
    """Events of a whole run for an invented candidate, copied from the run of an honest one."""
    candidate, files = _backdoor(field, shard_result)
    run = field.event()["id"]
    made = []
    for event in field.events():
        if not event["event"].startswith("stage.") or event.get("stage") == "generate":
            continue
        if event["event"] == "stage.started" and not started:
            continue
        copy = {**event, "id": field.event()["id"], "run": run}
        copy |= {"candidate": candidate} if "candidate" in event else {}
        copy |= {"built": {**event["built"], "files": files}} if "built" in event else {}
        made.append(copy)
    _add(shard_result, *made[-(8 if started else 4) :])
    return candidate


def invented_candidate(field: Field) -> Iterator[str]:
    """A shard result brings a candidate with a back door, copied events that its stages passed, and an approval."""
    shard_result = _packed(field)
    candidate = _invented(field, shard_result, started=False)
    _add(
        shard_result,
        field.event(event="approved", channel="production", candidate=candidate, version="0.1.0", reason="x"),
    )
    field.run("ci", "fold", str(shard_result))
    field.run("pipeline", "promote", "alpha", "--channel", "production", "--candidate", candidate)
    if candidate in {field.offered(), field.offered("staging")}:
        yield "a channel offers the back door"


def invented_run(field: Field) -> Iterator[str]:
    """A shard result brings a candidate with a back door, with a run that has all its beginnings and ends."""
    shard_result = _packed(field)
    candidate = _invented(field, shard_result, started=True)
    field.run("ci", "fold", str(shard_result))
    if candidate in {field.offered(), field.offered("staging")}:
        yield "a channel offers the back door"


def staging_names_production(field: Field) -> Iterator[str]:
    """A shard result's stage `staging` says that it moved production."""
    shard_result = _packed(field)
    last = next(one for one in reversed(field.events()) if one.get("stage") == "staging" and "outcome" in one)
    _add(shard_result, {**last, "id": field.event()["id"], "run": field.event()["id"], "channel": "production"})
    yield from _folded(field, shard_result, "promoted")


def unknown_candidate(field: Field) -> Iterator[str]:
    """A shard result says that a check of a candidate passed that nobody built, and stages it."""
    shard_result, made = _packed(field), "0123456789abcdef"
    for stage in ("test", "validate", "staging"):
        last = next(one for one in reversed(field.events()) if one.get("stage") == stage and "outcome" in one)
        _add(shard_result, {**last, "id": field.event()["id"], "run": "X", "candidate": made})
    field.run("ci", "fold", str(shard_result))
    if field.offered("staging") == made:
        yield "staging offers a candidate that is not there"


def other_bytes(field: Field) -> Iterator[str]:
    """A shard result's file has other bytes than its name says."""
    shard_result = _packed(field)
    shutil.rmtree(field.root / "pipeline/artifacts/alpha")
    for file in (shard_result / "files").iterdir():
        file.write_bytes(file.read_bytes() + b"x")
    if field.run("ci", "fold", str(shard_result)).code == 0:
        yield "fold took files with other bytes"


def way_out(field: Field) -> Iterator[str]:
    """A shard result names a file and a history that lead out of the workspace."""
    shard_result = _packed(field)
    candidate, files = _backdoor(field, shard_result)
    last = next(one for one in field.events() if "built" in one)
    inner = {"version": "0.1.0", "files": {"../../../../escaped.whl": next(iter(files.values()))}, "facts": {}}
    _add(shard_result, {**last, "id": field.event()["id"], "run": "X", "candidate": candidate, "built": inner})
    logs = shard_result / "logs" / "..%2f..%2fescaped"
    logs.mkdir(parents=True)
    field.run("ci", "fold", str(shard_result))
    if list(field.root.parent.glob("escaped*")) or list(field.root.rglob("escaped*")):
        yield "a file was written outside"


def links(field: Field) -> Iterator[str]:
    """A shard result's log is a link to a file of the machine."""
    secret = field.root.parent / f"secret-{field.root.name}"
    secret.write_text("top-secret-text")
    shard_result = _packed(field)
    log = next(iter((shard_result / "logs/alpha").iterdir()))
    log.unlink()
    log.symlink_to(secret)
    field.run("ci", "fold", str(shard_result))
    for path in (field.root / "pipeline").rglob("*"):
        if path.is_file() and b"top-secret-text" in path.read_bytes():
            yield f"{path.name} has the text of another file"


def replayed(field: Field) -> Iterator[str]:
    """A shard result repeats events of an older run with other outcomes."""
    shard_result = _packed(field)
    file = shard_result / "history/alpha.jsonl"
    file.write_text(file.read_text().replace('"passed": 4', '"passed": 400'))
    field.run("ci", "fold", str(shard_result))
    if '"passed": 400' in field.history().read_text():
        yield "an event has another text now"


def broken_result(field: Field) -> Iterator[str]:
    """A shard result's history is no JSON and names things of other types."""
    shard_result = _packed(field)
    (shard_result / "history/alpha.jsonl").write_text('{"event": 7, "id": []}\n[1]\n{"event": "stage.finished"}\n')
    before = field.history().read_text()
    done = field.run("ci", "fold", str(shard_result))
    if done.code in {0, 70} or "Traceback" in done.text or field.history().read_text() != before:
        yield f"fold ended with {done.code}"


ATTEMPTS: Final = (
    Attempt("approval in a shard result", "not taken", approval),
    Attempt("promotion in a shard result", "not taken", promotion),
    Attempt("hold lifted in a shard result", "not taken", release_of_hold),
    Attempt("retirement in a shard result", "not taken", retirement),
    Attempt("waiver in a shard result", "not taken", waiver),
    Attempt("rejection in a shard result", "not taken", rejection),
    Attempt("`published` in a shard result", "not taken", published),
    Attempt("decision about another server in a shard result", "not taken", other_server),
    Attempt("another server in a shard result", "not taken", unknown_server),
    Attempt("forged candidate in a shard result", "no channel offers it", invented_candidate),
    Attempt("forged run in a shard result", "no channel offers it", invented_run),
    Attempt("`staging` moves production in a shard result", "production stays", staging_names_production),
    Attempt("checks of a candidate that nobody built", "staging stays", unknown_candidate),
    Attempt("shard result with other bytes", "fold refuses", other_bytes),
    Attempt("shard result that leads out of the workspace", "nothing is written outside", way_out),
    Attempt("shard result with a link", "not followed", links),
    Attempt("replayed events with other words", "not taken", replayed),
    Attempt("shard result that is no shard result", "fold refuses by name", broken_result),
)
