"""Histories and states: lines, as somebody's editor, merge or forgery left them, to a state."""

from __future__ import annotations

import json
from typing import Any

from pydantic import ValidationError

from benchmarks.fuzz.mutation import mutate_lines
from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.state.folded import fold_history
from mcpfactory_pipeline.state.history import event_line, parse
from mcpfactory_pipeline.state.schema import explain, read_state
from mcpfactory_pipeline.state.state import fold

__all__ = ["SEEDS", "WORDS", "mutate", "one"]

mutate = mutate_lines
_HASH = "sha256:" + "0" * 64
_CANDIDATE = "c" * 16
_OFFER = {"channel": "production", "candidate": _CANDIDATE, "version": "0.1.0"}


def _event(number: int, kind: str, **members: Any) -> str:
    common = {"id": f"01M7Y3PY{number:018d}", "at": f"2026-11-01T10:00:{number:02d}Z", "actor": "Ada"}
    return json.dumps({**common, "event": kind, **members})


def _step(number: int, name: str, **members: Any) -> tuple[str, str]:
    step = {"stage": name, "run": "01M7Y3PY5A1VCVBVEQN4P0EB5V"}
    ended = {"outcome": "passed", "fingerprint": _HASH, "inputs": {"stage": "1"}, "candidate": _CANDIDATE}
    started = _event(number, "stage.started", **step, pid=7, reasons=["never run"])
    return started, _event(number + 1, "stage.finished", **step, **ended, **members)


_BUILT = {"version": "0.1.0", "files": {"shop-0.1.0-py3-none-any.whl": _HASH}, "facts": {}}
_HISTORY = (
    *_step(1, "build", built=_BUILT, seconds=1.5, message="built"),
    *_step(3, "test", summary={"tests": 3, "passed": 3}, artifacts={"logs/test.log": _HASH}),
    *_step(5, "staging", channel="staging", version="0.1.0"),
    _event(7, "approved", channel="production", candidate=_CANDIDATE, reason="read it"),
    _event(8, "promoted", **_OFFER),
    _event(9, "publish.started", target="pypi", **_OFFER),
    _event(10, "published", target="pypi", **_OFFER, digest=_HASH),
    _event(11, "rejected", stage="review", shown={"candidate": _CANDIDATE}, restart="build"),
    _event(12, "held", channel="staging"),
    _event(13, "waived", rule="names.tool", until="2027-01-01"),
    _event(14, "rolled-back", **_OFFER),
    _event(15, "stage.interrupted", stage="test", run="01M7Y3PY5A1VCVBVEQN4P0EB5V"),
    _event(16, "retired", channel="staging"),
)
SEEDS = (
    "\n".join(_HISTORY).encode(),
    "\n".join((*_HISTORY[:4], '{"id":')).encode(),
    b'<<<<<<< ours\n{"id":"x"}\n=======\n>>>>>>> theirs\n',
    json.dumps(
        {"state": 2, "server": "shop", "candidate": None, "retired": None, "stages": {}, "candidates": {}}
    ).encode(),
)
WORDS = (
    *(
        "id",
        "at",
        "actor",
        "event",
        "stage",
        "run",
        "outcome",
        "candidate",
        "channel",
        "version",
        "built",
        "inputs",
        "shown",
    ),
    *("stage.started", "stage.finished", "stage.interrupted", "approved", "rejected", "promoted", "rolled-back"),
    *("retired", "published", "held", "unheld", "passed", "failed", "production", "2026-11-01T10:00:00Z", _HASH),
)


def one(data: bytes) -> None:
    """Read the lines; they are refused with a reason, or come to one state."""
    try:
        read_state(data.decode(errors="replace"))
    except ValidationError as error:
        assert explain(error), "refused without a reason"
    try:
        events = parse(data, "history.jsonl")
        state = fold("shop", events)
    except StateError as error:
        assert str(error), "refused without a reason"
        return
    written = "\n".join(map(event_line, events)).encode()
    assert parse(written, "again") == events, "what is written is not what was read"
    assert fold_history("shop", events).state == state, "it comes to another state with the stages under way"
