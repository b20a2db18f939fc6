"""State and history that somebody edited, and decisions that nobody took."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

from benchmarks.trials.gate.attempt import Attempt
from benchmarks.trials.gate.workspace import AttackedWorkspace
from mcpfactory_pipeline.base.ids import format_time, utc_now

_PROMOTE: Final = ("pipeline", "promote", "alpha", "--channel", "production")


def _stays(space: AttackedWorkspace) -> Iterator[str]:
    """Promotes what staging offers: production has to stay."""
    old = space.old
    done = space.run(*_PROMOTE)
    if done.code == 0 or space.offered() != old:
        yield f"production offers {space.offered()}, which nobody may promote"


def _verified(space: AttackedWorkspace, *words: str) -> Iterator[str]:
    done = space.run("pipeline", "verify", "alpha", *words)
    if done.code == 0:
        yield "verify finds nothing"
    if done.code == 70:
        yield "verify is at its end itself"


def approval_missing(space: AttackedWorkspace) -> Iterator[str]:
    """Promotes a candidate that nobody approved."""
    yield from _stays(space)


def edited_state_promoted(space: AttackedWorkspace) -> Iterator[str]:
    """Writes an approval into the state, and promotes."""
    state = space.change_state()
    state["approvals"] = {f"production {space.new} Grace": "good"}
    space.write_state(state)
    yield from _stays(space)
    yield from _verified(space)


def edited_state_published(space: AttackedWorkspace) -> Iterator[str]:
    """Writes into the state that production offers the newer candidate, and publishes a bundle."""
    state = space.change_state()
    state["channels"]["production"]["candidate"] = space.new
    space.write_state(state)
    done = space.run("publish", "alpha", "--target", "mcpb")
    if done.code == 0 or list(space.root.rglob("*.mcpb")):
        yield "a bundle was made of what nobody promoted"


def edited_state_shown(space: AttackedWorkspace) -> Iterator[str]:
    """Writes into the state that production offers the newer candidate, and asks where alpha stands."""
    state = space.change_state()
    state["channels"]["production"]["candidate"] = space.new
    space.write_state(state)
    done = space.run("pipeline", "status", "alpha")
    if "verify" not in done.text:
        yield "status shows it as if it were true"
    if "verify" not in space.run("inbox", "alpha").text:
        yield "the inbox does not have it"


def edited_state_restored(space: AttackedWorkspace) -> Iterator[str]:
    """Writes into the state that production offers the newer candidate, and restores the channels."""
    state, before = space.change_state(), space.served()
    state["channels"]["production"]["candidate"] = space.new
    space.write_state(state)
    space.run("pipeline", "restore", "alpha")
    if space.served() != before:
        yield "the channel serves what nobody promoted"


def failed_check_rewritten(space: AttackedWorkspace) -> Iterator[str]:
    """Turns a check of the newer candidate that failed into one that passed, in the history that was committed."""
    events = space.events()
    last = max(at for at, one in enumerate(events) if one.get("stage") == "test" and "outcome" in one)
    honest = [{**one, "outcome": "failed"} if at == last else one for at, one in enumerate(events)]
    space.write_events(honest)
    space.run("pipeline", "verify", "alpha", "--repair")
    space.git("commit", "-qam", "A failure")
    space.write_events(events)
    space.run("pipeline", "verify", "alpha", "--repair")
    space.run("pipeline", "approve", "alpha", by="Grace")
    yield from _stays(space)


def _decided(space: AttackedWorkspace, *words: str) -> None:
    done = space.run("pipeline", *words, "alpha", "--channel", "production", "--reason", "it is bad", by="Grace")
    assert done.code == 0, done.text
    space.git("commit", "-qam", "A decision")


def _dropped(space: AttackedWorkspace, kind: str) -> None:
    space.write_events([one for one in space.events() if one["event"] != kind])


def rejection_dropped(space: AttackedWorkspace) -> Iterator[str]:
    """Takes a committed rejection out of the history, repairs the state, approves, and promotes."""
    _decided(space, "reject")
    _dropped(space, "rejected")
    space.run("pipeline", "verify", "alpha", "--repair")
    space.run("pipeline", "approve", "alpha", by="Linus")
    yield from _stays(space)


def hold_dropped(space: AttackedWorkspace) -> Iterator[str]:
    """Takes a committed hold out of the history, repairs the state, and promotes what was approved."""
    space.run("pipeline", "approve", "alpha", by="Linus")
    _decided(space, "hold")
    _dropped(space, "held")
    space.run("pipeline", "verify", "alpha", "--repair")
    yield from _stays(space)


def rewriting_repaired(space: AttackedWorkspace) -> Iterator[str]:
    """Changes who decided in the committed history, and has `--repair` make state and history agree."""
    space.write_events([{**one, "actor": "Mallory"} if one["event"] == "approved" else one for one in space.events()])
    if space.run("pipeline", "verify", "alpha", "--repair").code == 0 and space.run("pipeline", "verify").code == 0:
        yield "after --repair nothing is found"


def rewriting_against(space: AttackedWorkspace) -> Iterator[str]:
    """Changes the actor in the committed history, writes a matching state, and runs `ci --check --against HEAD`."""
    _decided(space, "hold")
    space.write_events([{**one, "actor": "Mallory"} if one["event"] == "held" else one for one in space.events()])
    state = space.change_state()
    state["holds"]["production"]["actor"] = "Mallory"
    space.write_state(state)
    yield from _refused_by_check(space, "missing or changed")


def _refused_by_check(space: AttackedWorkspace, words: str) -> Iterator[str]:
    space.run("ci")  # the workflow of this version
    done = space.run("ci", "--check", "--against", "HEAD")
    if done.code == 0 or words not in done.text:
        yield f"ci --check --against ends with {done.code}: {done.text[-300:]}"


def history_deleted(space: AttackedWorkspace) -> Iterator[str]:
    """Deletes the history and leaves a state with an approval."""
    state = space.change_state()
    state["approvals"] = {f"production {space.new} Grace": "good"}
    old = space.old
    space.history().unlink()
    space.write_state(state)
    done = space.run(*_PROMOTE)
    if done.code == 0 or space.offered() != old:
        yield "promoted without a history"


def clock_jumps_back(space: AttackedWorkspace) -> Iterator[str]:
    """Adds an approval that is ten years older than the event before it, and runs `ci --check --against HEAD`."""
    space.forge(event="approved", channel="production", candidate=space.new, version="0.1.1", at="2016-01-01T00:00:00Z")
    yield from _refused_by_check(space, "approved by Grace")


def clock_ahead(space: AttackedWorkspace) -> Iterator[str]:
    """Moves the candidate into staging a year ago, for a soak of a day: the event's clock and its id differ."""
    events = space.events()
    space.configure(approvals="0")
    file = space.root / "mcpfactory.toml"
    file.write_text(file.read_text() + 'soak = "24h"\n')
    last = max(at for at, one in enumerate(events) if one.get("channel") == "staging")
    events[last]["at"] = "2025-11-01T00:00:00Z"
    space.write_events(events)
    space.run("pipeline", "verify", "alpha", "--repair")
    yield from _stays(space)


def same_id_twice(space: AttackedWorkspace) -> Iterator[str]:
    """Adds a line that has the id of another event, and says something else."""
    other = next(one for one in space.events() if one["event"] == "promoted")
    space.write_events([*space.events(), {**other, "candidate": space.new}])
    yield from _verified(space)


def not_an_approver(space: AttackedWorkspace) -> Iterator[str]:
    """Approves as somebody whom the channel does not name."""
    file = space.root / "mcpfactory.toml"
    file.write_text(file.read_text() + 'approvers = ["Grace"]\n')
    space.run("pipeline", "approve", "alpha", by="Mallory")
    yield from _stays(space)


def one_person_twice(space: AttackedWorkspace) -> Iterator[str]:
    """Approves twice as one person whose name is written in other ways."""
    space.configure(approvals="2")
    for name in ("Grace", "grace ", " Grace\u200b", "GRACE"):
        space.run("pipeline", "approve", "alpha", by=name)
    yield from _stays(space)


def other_candidate_approved(space: AttackedWorkspace) -> Iterator[str]:
    """Approves the older candidate, and promotes the newer one."""
    space.run("pipeline", "approve", "alpha", "--candidate", space.old, by="Grace")
    yield from _stays(space)


def end_without_start(space: AttackedWorkspace) -> Iterator[str]:
    """Writes that a check of the newer candidate passed, in a run that never was, repairs the state, approves and promotes."""
    space.run("pipeline", "approve", "alpha", by="Grace")
    end = next(one for one in reversed(space.events()) if one.get("stage") == "test" and "outcome" in one)
    space.forge(**{name: end[name] for name in end if name not in {"id", "at", "run"}}, run="01JZ" + "0" * 22)
    space.run("pipeline", "verify", "alpha", "--repair")
    yield from _stays(space)
    yield from _verified(space)


def _pushed(space: AttackedWorkspace, base: str) -> Iterator[str]:
    """Promotes by hand in what is pushed on top of `base`, and asks what CI asks."""
    space.forge(event="promoted", channel="production", candidate=space.new, version="0.1.1", actor="Mallory")
    space.run("pipeline", "verify", "alpha", "--repair")
    space.run("ci")  # workflows as this version writes them
    done = space.run("ci", "--check", "--against", base, "--pushed")
    if done.code == 0 or "missing" not in done.text:
        yield f"ci --check --pushed ends with {done.code}: {done.text[-300:]}"


def promotion_pushed(space: AttackedWorkspace) -> Iterator[str]:
    """Pushes the line of a promotion that nobody approved."""
    yield from _pushed(space, "HEAD")


def lowered_and_pushed(space: AttackedWorkspace) -> Iterator[str]:
    """Pushes a promotion together with `approvals = 0`."""
    space.configure(approvals="0")
    yield from _pushed(space, "HEAD")


def _pushed_without(space: AttackedWorkspace, stage: str) -> Iterator[str]:
    """Approve, commit a stage that the candidate never passed, then remove the stage and promote in one push."""
    space.run("pipeline", "approve", "alpha", by="Grace")
    file = space.root / "mcpfactory.toml"
    text = file.read_text()
    file.write_text(f'{text}[[pipeline.stages]]\nname = "licenses"\n{stage}\n')
    space.run("ci")  # the workflow of this version
    space.git("add", "-A")
    space.git("commit", "-qm", "A stage")
    file.write_text(text)
    space.run(*_PROMOTE)
    space.git("commit", "-qam", "A promotion")
    done = space.run("ci", "--check", "--against", "HEAD~1", "--pushed")
    if done.code == 0 or "licenses" not in done.text:
        yield f"ci --check --pushed ends with {done.code}: {done.text[-300:]}"


def stage_removed_and_pushed(space: AttackedWorkspace) -> Iterator[str]:
    """Removes a check and promotes a candidate that never passed it, in one push."""
    yield from _pushed_without(space, 'command = ["false"]')


def approval_stage_removed_and_pushed(space: AttackedWorkspace) -> Iterator[str]:
    """Removes an approval stage and promotes a candidate that it never approved, in one push."""
    yield from _pushed_without(space, 'kind = "approval"')


def dated_ahead(space: AttackedWorkspace) -> Iterator[str]:
    """Adds a promotion to staging that is dated 25 hours ahead, for a soak of a day, and promotes."""
    space.configure(approvals="0")
    file = space.root / "mcpfactory.toml"
    file.write_text(file.read_text() + 'soak = "24h"\n')
    ahead = format_time(utc_now() + timedelta(hours=25))
    space.forge(event="promoted", channel="staging", candidate=space.new, version="0.1.0", at=ahead)
    yield from _invalid(space, *_PROMOTE)


def largest_id(space: AttackedWorkspace) -> Iterator[str]:
    """Adds a hold with an id of 26 Z, behind which no later event sorts, and lifts the hold."""
    space.forge(event="held", channel="production", reason="", id="Z" * 26)
    yield from _invalid(space, "pipeline", "unhold", "alpha", "--channel", "production")


def _invalid(space: AttackedWorkspace, *words: str) -> Iterator[str]:
    """Repair the state; then the command must be refused, and status and verify must name the event."""
    space.run("pipeline", "verify", "alpha", "--repair")
    if space.run(*words).code == 0:
        yield f"{' '.join(words)} reports success"
    for command in ("status", "verify"):
        if "later than" not in space.run("pipeline", command, "alpha").text:
            yield f"{command} does not name the event"


def _spoiled(space: AttackedWorkspace, **members: Any) -> Iterator[str]:
    events = space.events("beta")
    space.write_events([*events[:-1], {**events[-1], **members}], "beta")
    for words in (("pipeline", "status"), ("inbox",), ("pipeline", "verify"), ("pipeline", "plan")):
        done = space.run(*words)
        if done.code == 70 or "Traceback" in done.text:
            yield f"{' '.join(words)} ended with {done.code}"
        elif "beta" not in done.text or (words[-1] == "status" and "alpha" not in done.text):
            yield f"{' '.join(words)} does not speak of both servers"


def bad_types(space: AttackedWorkspace) -> Iterator[str]:
    """Gives beta's last event a summary of another type."""
    yield from _spoiled(space, candidate=["x"], channel={"a": 1}, version=7)


def numeric_id(space: AttackedWorkspace) -> Iterator[str]:
    """Gives beta's last event a number as its id."""
    yield from _spoiled(space, id=7)


def no_time(space: AttackedWorkspace) -> Iterator[str]:
    """Takes the time from beta's last event."""
    yield from _spoiled(space, at=None)


def owners_named(space: AttackedWorkspace) -> Iterator[str]:
    """Looks for the file that says who reviews history, state and policy."""
    found = [path for path in (".github/CODEOWNERS", "CODEOWNERS") if (space.root / path).exists()]
    text = (space.root / found[0]).read_text() if found else ""
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
    Attempt("an event older than the one before", "ci --check --against finds it", clock_jumps_back),
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
