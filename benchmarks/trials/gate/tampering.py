"""State and history that somebody edited, and decisions that nobody took."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

from benchmarks.trials.gate.attempt import Attempt
from benchmarks.trials.gate.workspace import AttackedWorkspace
from mcpfactory_pipeline.base.ids import format_time, utc_now

_PROMOTE: Final = ("pipeline", "promote", "alpha", "--channel", "production")


def _stays(field: AttackedWorkspace) -> Iterator[str]:
    """Promotes what staging offers: production has to stay."""
    old = field.old
    done = field.run(*_PROMOTE)
    if done.code == 0 or field.offered() != old:
        yield f"production offers {field.offered()}, which nobody may promote"


def _verified(field: AttackedWorkspace, *words: str) -> Iterator[str]:
    done = field.run("pipeline", "verify", "alpha", *words)
    if done.code == 0:
        yield "verify finds nothing"
    if done.code == 70:
        yield "verify is at its end itself"


def approval_missing(field: AttackedWorkspace) -> Iterator[str]:
    """Promotes a candidate that nobody approved."""
    yield from _stays(field)


def edited_state_promoted(field: AttackedWorkspace) -> Iterator[str]:
    """Writes an approval into the state, and promotes."""
    state = field.change_state()
    state["candidates"][field.new]["approvals"] = {"production": {"Grace": "good"}}
    field.write_state(state)
    yield from _stays(field)
    yield from _verified(field)


def edited_state_published(field: AttackedWorkspace) -> Iterator[str]:
    """Writes into the state that production offers the newer candidate, and publishes a bundle."""
    state = field.change_state()
    state["channels"]["production"]["candidate"] = field.new
    field.write_state(state)
    done = field.run("publish", "alpha", "--target", "mcpb")
    if done.code == 0 or list(field.root.rglob("*.mcpb")):
        yield "a bundle was made of what nobody promoted"


def edited_state_shown(field: AttackedWorkspace) -> Iterator[str]:
    """Writes into the state that production offers the newer candidate, and asks where alpha stands."""
    state = field.change_state()
    state["channels"]["production"]["candidate"] = field.new
    field.write_state(state)
    done = field.run("pipeline", "status", "alpha")
    if "verify" not in done.text:
        yield "status shows it as if it were true"
    if "verify" not in field.run("inbox", "alpha").text:
        yield "the inbox does not have it"


def edited_state_restored(field: AttackedWorkspace) -> Iterator[str]:
    """Writes into the state that production offers the newer candidate, and restores the channels."""
    state, before = field.change_state(), field.served()
    state["channels"]["production"]["candidate"] = field.new
    field.write_state(state)
    field.run("pipeline", "restore", "alpha")
    if field.served() != before:
        yield "the channel serves what nobody promoted"


def failed_check_rewritten(field: AttackedWorkspace) -> Iterator[str]:
    """Turns a check of the newer candidate that failed into one that passed, in the history that was committed."""
    events = field.events()
    last = max(at for at, one in enumerate(events) if one.get("stage") == "test" and "outcome" in one)
    honest = [{**one, "outcome": "failed"} if at == last else one for at, one in enumerate(events)]
    field.write_events(honest)
    field.run("pipeline", "verify", "alpha", "--repair")
    field.git("commit", "-qam", "A failure")
    field.write_events(events)
    field.run("pipeline", "verify", "alpha", "--repair")
    field.run("pipeline", "approve", "alpha", by="Grace")
    yield from _stays(field)


def _decided(field: AttackedWorkspace, *words: str) -> None:
    done = field.run("pipeline", *words, "alpha", "--channel", "production", "--reason", "it is bad", by="Grace")
    assert done.code == 0, done.text
    field.git("commit", "-qam", "A decision")


def _dropped(field: AttackedWorkspace, kind: str) -> None:
    field.write_events([one for one in field.events() if one["event"] != kind])


def rejection_dropped(field: AttackedWorkspace) -> Iterator[str]:
    """Takes a committed rejection out of the history, repairs the state, approves, and promotes."""
    _decided(field, "reject")
    _dropped(field, "rejected")
    field.run("pipeline", "verify", "alpha", "--repair")
    field.run("pipeline", "approve", "alpha", by="Linus")
    yield from _stays(field)


def hold_dropped(field: AttackedWorkspace) -> Iterator[str]:
    """Takes a committed hold out of the history, repairs the state, and promotes what was approved."""
    field.run("pipeline", "approve", "alpha", by="Linus")
    _decided(field, "hold")
    _dropped(field, "held")
    field.run("pipeline", "verify", "alpha", "--repair")
    yield from _stays(field)


def rewriting_repaired(field: AttackedWorkspace) -> Iterator[str]:
    """Changes who decided in the committed history, and has `--repair` make state and history agree."""
    field.write_events([{**one, "actor": "Mallory"} if one["event"] == "approved" else one for one in field.events()])
    if field.run("pipeline", "verify", "alpha", "--repair").code == 0 and field.run("pipeline", "verify").code == 0:
        yield "after --repair nothing is found"


def rewriting_against(field: AttackedWorkspace) -> Iterator[str]:
    """Changes the actor in the committed history, writes a matching state, and runs `ci --check --against HEAD`."""
    _decided(field, "hold")
    field.write_events([{**one, "actor": "Mallory"} if one["event"] == "held" else one for one in field.events()])
    state = field.change_state()
    state["holds"]["production"]["actor"] = "Mallory"
    field.write_state(state)
    field.run("ci")  # the workflow of this version
    done = field.run("ci", "--check", "--against", "HEAD")
    if done.code == 0 or "missing or changed" not in done.text:
        yield f"ci --check --against ends with {done.code}: {done.text[-300:]}"


def history_deleted(field: AttackedWorkspace) -> Iterator[str]:
    """Deletes the history and leaves a state with an approval."""
    state = field.change_state()
    state["candidates"][field.new]["approvals"] = {"production": {"Grace": "good"}}
    old = field.old
    field.history().unlink()
    field.write_state(state)
    done = field.run(*_PROMOTE)
    if done.code == 0 or field.offered() != old:
        yield "promoted without a history"


def clock_jumps_back(field: AttackedWorkspace) -> Iterator[str]:
    """Adds an event that is ten years older than the one before it."""
    field.forge(event="approved", channel="production", candidate=field.new, version="0.1.1", at="2016-01-01T00:00:00Z")
    yield from _verified(field)


def clock_ahead(field: AttackedWorkspace) -> Iterator[str]:
    """Moves the candidate into staging a year ago, for a soak of a day: the event's clock and its id differ."""
    events = field.events()
    field.configure(approvals="0")
    file = field.root / "mcpfactory.toml"
    file.write_text(file.read_text() + 'soak = "24h"\n')
    last = max(at for at, one in enumerate(events) if one.get("channel") == "staging")
    events[last]["at"] = "2025-11-01T00:00:00Z"
    field.write_events(events)
    field.run("pipeline", "verify", "alpha", "--repair")
    yield from _stays(field)


def same_id_twice(field: AttackedWorkspace) -> Iterator[str]:
    """Adds a line that has the id of another event, and says something else."""
    other = next(one for one in field.events() if one["event"] == "promoted")
    field.write_events([*field.events(), {**other, "candidate": field.new}])
    yield from _verified(field)


def not_an_approver(field: AttackedWorkspace) -> Iterator[str]:
    """Approves as somebody whom the channel does not name."""
    file = field.root / "mcpfactory.toml"
    file.write_text(file.read_text() + 'approvers = ["Grace"]\n')
    field.run("pipeline", "approve", "alpha", by="Mallory")
    yield from _stays(field)


def one_person_twice(field: AttackedWorkspace) -> Iterator[str]:
    """Approves twice as one person whose name is written in other ways."""
    field.configure(approvals="2")
    for name in ("Grace", "grace ", " Grace\u200b", "GRACE"):
        field.run("pipeline", "approve", "alpha", by=name)
    yield from _stays(field)


def other_candidate_approved(field: AttackedWorkspace) -> Iterator[str]:
    """Approves the older candidate, and promotes the newer one."""
    field.run("pipeline", "approve", "alpha", "--candidate", field.old, by="Grace")
    yield from _stays(field)


def end_without_start(field: AttackedWorkspace) -> Iterator[str]:
    """Writes that a check of the newer candidate passed, in a run that never was, repairs the state, approves and promotes."""
    field.run("pipeline", "approve", "alpha", by="Grace")
    end = next(one for one in reversed(field.events()) if one.get("stage") == "test" and "outcome" in one)
    field.forge(**{name: end[name] for name in end if name not in {"id", "at", "run"}}, run="01JZ" + "0" * 22)
    field.run("pipeline", "verify", "alpha", "--repair")
    yield from _stays(field)
    yield from _verified(field)


def _pushed(field: AttackedWorkspace, base: str) -> Iterator[str]:
    """Promotes by hand in what is pushed on top of `base`, and asks what CI asks."""
    field.forge(event="promoted", channel="production", candidate=field.new, version="0.1.1", actor="Mallory")
    field.run("pipeline", "verify", "alpha", "--repair")
    field.run("ci")  # workflows as this version writes them
    done = field.run("ci", "--check", "--against", base, "--pushed")
    if done.code == 0 or "missing" not in done.text:
        yield f"ci --check --pushed ends with {done.code}: {done.text[-300:]}"


def promotion_pushed(field: AttackedWorkspace) -> Iterator[str]:
    """Pushes the line of a promotion that nobody approved."""
    yield from _pushed(field, "HEAD")


def lowered_and_pushed(field: AttackedWorkspace) -> Iterator[str]:
    """Pushes a promotion together with `approvals = 0`."""
    field.configure(approvals="0")
    yield from _pushed(field, "HEAD")


def _pushed_without(field: AttackedWorkspace, stage: str) -> Iterator[str]:
    """Approve, commit a stage that the candidate never passed, then remove the stage and promote in one push."""
    field.run("pipeline", "approve", "alpha", by="Grace")
    file = field.root / "mcpfactory.toml"
    text = file.read_text()
    file.write_text(f'{text}[[pipeline.stages]]\nname = "licenses"\n{stage}\n')
    field.run("ci")  # the workflow of this version
    field.git("add", "-A")
    field.git("commit", "-qm", "A stage")
    file.write_text(text)
    field.run(*_PROMOTE)
    field.git("commit", "-qam", "A promotion")
    done = field.run("ci", "--check", "--against", "HEAD~1", "--pushed")
    if done.code == 0 or "licenses" not in done.text:
        yield f"ci --check --pushed ends with {done.code}: {done.text[-300:]}"


def stage_removed_and_pushed(field: AttackedWorkspace) -> Iterator[str]:
    """Removes a check and promotes a candidate that never passed it, in one push."""
    yield from _pushed_without(field, 'command = ["false"]')


def approval_stage_removed_and_pushed(field: AttackedWorkspace) -> Iterator[str]:
    """Removes an approval stage and promotes a candidate that it never approved, in one push."""
    yield from _pushed_without(field, 'kind = "approval"')


def dated_ahead(field: AttackedWorkspace) -> Iterator[str]:
    """Adds a promotion to staging that is dated 25 hours ahead, for a soak of a day, and promotes."""
    field.configure(approvals="0")
    file = field.root / "mcpfactory.toml"
    file.write_text(file.read_text() + 'soak = "24h"\n')
    ahead = format_time(utc_now() + timedelta(hours=25))
    field.forge(event="promoted", channel="staging", candidate=field.new, version="0.1.0", at=ahead)
    yield from _invalid(field, *_PROMOTE)


def largest_id(field: AttackedWorkspace) -> Iterator[str]:
    """Adds a hold with an id of 26 Z, behind which no later event sorts, and lifts the hold."""
    field.forge(event="held", channel="production", reason="", id="Z" * 26)
    yield from _invalid(field, "pipeline", "unhold", "alpha", "--channel", "production")


def _invalid(field: AttackedWorkspace, *words: str) -> Iterator[str]:
    """Repair the state; then the command must be refused, and status and verify must name the event."""
    field.run("pipeline", "verify", "alpha", "--repair")
    if field.run(*words).code == 0:
        yield f"{' '.join(words)} reports success"
    for command in ("status", "verify"):
        if "ahead of" not in field.run("pipeline", command, "alpha").text:
            yield f"{command} does not name the event"


def _spoiled(field: AttackedWorkspace, **members: Any) -> Iterator[str]:
    events = field.events("beta")
    field.write_events([*events[:-1], {**events[-1], **members}], "beta")
    for words in (("pipeline", "status"), ("inbox",), ("pipeline", "verify"), ("pipeline", "plan")):
        done = field.run(*words)
        if done.code == 70 or "Traceback" in done.text:
            yield f"{' '.join(words)} ended with {done.code}"
        elif "beta" not in done.text or (words[-1] == "status" and "alpha" not in done.text):
            yield f"{' '.join(words)} does not speak of both servers"


def bad_types(field: AttackedWorkspace) -> Iterator[str]:
    """Gives beta's last event a summary of another type."""
    yield from _spoiled(field, candidate=["x"], channel={"a": 1}, version=7)


def numeric_id(field: AttackedWorkspace) -> Iterator[str]:
    """Gives beta's last event a number as its id."""
    yield from _spoiled(field, id=7)


def no_time(field: AttackedWorkspace) -> Iterator[str]:
    """Takes the time from beta's last event."""
    yield from _spoiled(field, at=None)


def owners_named(field: AttackedWorkspace) -> Iterator[str]:
    """Looks for the file that says who reviews history, state and policy."""
    found = [path for path in (".github/CODEOWNERS", "CODEOWNERS") if (field.root / path).exists()]
    text = (field.root / found[0]).read_text() if found else ""
    for part in ("pipeline/history", "mcpfactory.toml", "waivers.toml"):
        if part not in text:
            yield f"nobody owns {part}"


ATTEMPTS: Final = (
    Attempt("promote without an approval", "production stays", approval_missing),
    Attempt("approval written into the state", "production stays, verify finds it", edited_state_promoted),
    Attempt("state edited, then published", "publish refuses", edited_state_published),
    Attempt("state edited, then shown", "status and inbox say so", edited_state_shown),
    Attempt("state edited, then restored", "the channel stays", edited_state_restored),
    Attempt("failure rewritten to a pass", "production stays", failed_check_rewritten),
    Attempt("rejection taken out of the history", "production stays", rejection_dropped),
    Attempt("hold taken out of the history", "production stays", hold_dropped),
    Attempt("verify --repair after rewriting", "repair refuses", rewriting_repaired),
    Attempt("rewritten with a state that fits", "ci --check --against finds it", rewriting_against),
    Attempt("history deleted", "production stays", history_deleted),
    Attempt("an event older than the one before", "verify finds it", clock_jumps_back),
    Attempt("soak shortened by an older time", "production stays", clock_ahead),
    Attempt("two events with one id", "verify finds it", same_id_twice),
    Attempt("approval by a stranger", "production stays", not_an_approver),
    Attempt("one person approves four times", "counts as one", one_person_twice),
    Attempt("approval of another candidate", "production stays", other_candidate_approved),
    Attempt("an end of a stage that no run began", "production stays, verify finds it", end_without_start),
    Attempt("a promotion pushed by hand", "ci --check --pushed refuses", promotion_pushed),
    Attempt("pushed with a lower policy", "ci --check --pushed refuses", lowered_and_pushed),
    Attempt("remove a stage and promote in one push", "ci --check --pushed refuses", stage_removed_and_pushed),
    Attempt(
        "remove approval stage and promote in one push",
        "ci --check --pushed refuses",
        approval_stage_removed_and_pushed,
    ),
    Attempt("event dated ahead to satisfy soak", "refused; status and verify name it", dated_ahead),
    Attempt("event id of 26 Z", "refused; status and verify name it", largest_id),
    Attempt("wrong inner types in one history", "only that server stops", bad_types),
    Attempt("numeric id in one history", "only that server stops", numeric_id),
    Attempt("an event without a time", "only that server stops", no_time),
    Attempt("nobody reviews decisions", "init names owners", owners_named),
)
