"""What the trial of eight processes holds against each other: what commands said, and what the histories have."""

from __future__ import annotations

from benchmarks.trials.crowd import faults_of
from tests.rows import rows

_SECOND = 1_700_000_000


def event(second: float, kind: str, reason: str = "", **facts):
    """An event whose id is of that second."""
    value, digits = int((_SECOND + second) * 1000) << 80, "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    name = "".join(digits[(value >> shift) & 31] for shift in range(125, -1, -5))
    return {"id": name, "event": kind, "reason": reason, "channel": "production", **facts}


def note(command: str, reason: str, began: float, ended: float, code: int = 0, **said):
    times = {"began": _SECOND + began, "ended": _SECOND + ended}
    told = {"said": {"channel": "production", **said}} if said else {}
    return {"command": command, "server": "a", "reason": reason, "code": code, **times, **told}


def promoted(second: float, reason: str, candidate: str):
    return event(second, "promoted", reason, candidate=candidate)


def promote(reason: str, began: float, ended: float, candidate: str, *, already: bool):
    return note("promote", reason, began, ended, candidate=candidate, already=already)


FIRST = promote("1", 0, 2, "one", already=False)
SECOND = promote("2", 4, 6, "two", already=False)
MOVED = [promoted(1, "1", "one"), promoted(5, "2", "two")]


def test_a_promotion_of_what_is_there_leaves_no_event_while_it_is_there():
    again = promote("3", 3, 4.5, "one", already=True)
    assert list(faults_of([FIRST, SECOND, again], {"a": MOVED})) == []


@rows("notes, events, fault", [
        ([FIRST, SECOND], MOVED[:1], "promote (2) ended in 0 and is in the history 0 times"),
        ([FIRST, SECOND], [*MOVED, promoted(5.5, "2", "three")], "promote (2) ended in 0 and is in the history 2 times"),
        ([{**FIRST, "code": 1}], MOVED[:1], "promote (1) ended in 1 and is in the history 1 times"),
        ([{**FIRST, "code": 5}], [], "promote (1) ended in 5"),
        ([FIRST, promote("3", 2, 4, "two", already=True)], MOVED[:1], "promote (3) says that two was offered already, and the history does not"),
        ([FIRST, SECOND, promote("3", 2, 4, "two", already=True)], MOVED, "promote (3) says that two was offered already, and the history does not"),
        ([FIRST, SECOND, promote("3", 7, 8, "one", already=True)], MOVED, "promote (3) says that one was offered already, and the history does not"),
        ([FIRST, promote("3", 7, 8, "one", already=True)], [*MOVED[:1], promoted(7.5, "3", "two")], "promote (3) ended in 0 and is in the history 1 times"),
        ([FIRST, promote("3", 3, 4, "one", already=False)], [*MOVED[:1], promoted(3.5, "3", "one")], "a: promoted (3) although production offered that already"),
        ([note("hold", "1", 0, 1), note("hold", "2", 0, 1)], [event(0.5, "held", "1"), event(0.6, "held", "2")], "a: held (2) although production was held"),
        ([note("unhold", "1", 0, 1)], [event(0.5, "released", "1")], "a: released (1) although production was not held"),
        ([], [event(0.5, "held", "1")], "in the history, and nobody's: 1"),
    ])  # fmt: skip
def test_what_is_lost_doubled_or_impossible_is_said(notes, events, fault):
    assert fault in list(faults_of(notes, {"a": events}))
