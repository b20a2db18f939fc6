"""State file of a server, for people who read a diff.

The file is a view of the history, and no command reads facts from it. Each line depends on one event, so Git can merge
two views by keeping the lines of both (`merge=union`). The next command replaces a merged or outdated view.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain
from typing import Any, Final

from mcpfactory_pipeline.state.event_schema import Event
from mcpfactory_pipeline.state.history import CONFLICT_MARKERS
from mcpfactory_pipeline.state.state import (
    SCHEMA,
    Candidate,
    Publication,
    ServerState,
    StageRecord,
    apply_event,
    state_to_text,
)

VIEW_SCHEMA: Final = 3
_SCHEMA_LINE: Final = re.compile(r'^\s*\{?\s*"state": (\d+)', re.MULTILINE)
# Commas and braces depend on the neighbors of a line.
_PUNCTUATION: Final = " \t\r{},"


def view_text(state: ServerState) -> str:
    """Return the text of the state file, with one line per fact."""
    lines = [f'"state": {VIEW_SCHEMA}', f'"server": {_json(state.server)}']
    if state.candidate:
        lines.append(f'"candidate": {_json(_offer(state, state.candidate))}')
    if state.retired:
        lines.append(f'"retired": {_json(state.retired)}')
    for name, section in _sections(state).items():
        if section:
            rows = ",\n".join(f"    {_json(key)}: {_json(section[key])}" for key in sorted(section))
            lines.append(f'"{name}": {{\n{rows}\n  }}')
    return "{\n" + ",\n".join(f"  {line}" for line in lines) + "\n}\n"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _sections(state: ServerState) -> dict[str, dict[str, Any]]:
    releases = state.channels.items()
    shown = dict.fromkeys(filter(None, (state.candidate, *(release.candidate for _, release in releases))))
    candidates = {name: known for name in shown if (known := state.candidates.get(name))}
    return {
        "stages": {name: _stage(record) for name, record in state.stages.items()},
        "channels": {name: {"version": one.version, "candidate": one.candidate} for name, one in releases},
        "holds": dict(state.holds),
        "approvals": dict(_decisions((name, known.approvals) for name, known in candidates.items())),
        "rejections": dict(_decisions((name, known.rejections) for name, known in candidates.items())),
        "decisions": {
            f"{stage} {word} {who}": reason
            for stage, known in state.decisions.items()
            for word, people in (("approved", known.approvals), ("rejected", known.rejections))
            for who, reason in people.items()
        },
        "sent_back": dict(state.sent_back),
        "published": {name: _publication(one) for name, one in state.published.items()},
        "publishing": {name: _publication(one) for name, one in state.publishing.items()},
    }


def _offer(state: ServerState, candidate: str) -> dict[str, str]:
    known = state.candidates.get(candidate)
    return {**({"version": known.version} if known else {}), "candidate": candidate}


def _stage(record: StageRecord) -> dict[str, str]:
    facts = {"outcome": record.outcome, "candidate": record.candidate or ""}
    if record.outcome != "passed":
        facts["message"] = record.message
    return {name: fact for name, fact in facts.items() if fact}


def _decisions(
    decided: Iterable[tuple[str, Mapping[str, Mapping[str, str]]]],
) -> Iterator[tuple[str, str]]:
    for candidate, by_channel in decided:
        for channel, people in by_channel.items():
            for who, reason in people.items():
                yield f"{channel} {candidate} {who}", reason


def _publication(one: Publication) -> dict[str, str]:
    return {"version": one.version, "candidate": one.candidate, "channel": one.channel}


def view_schema(text: str) -> int:
    """Return the largest schema number in a state file, or 0. A merge can keep the lines of two schemas."""
    return max((int(found) for found in _SCHEMA_LINE.findall(text)), default=0)


def is_view_of(server: str, text: str, events: Sequence[Event]) -> bool:
    """Return True if each line of the text is a fact of one of the events.

    An interrupted write, a merge, or an earlier version of mcpfactory can leave such a text. Any other line was edited
    by hand, or its event was lost. The order of the events is not compared, because a merge changes it.
    """
    left = _facts(line for line in text.split("\n") if not line.encode().startswith(CONFLICT_MARKERS))
    # Usually, only the newest lines are missing.
    alone = (apply_event(_state_before(server, event), event) for event in reversed(events))
    renderings: Iterator[str] = map(view_text, chain([ServerState(server)], alone))
    if SCHEMA in map(int, _SCHEMA_LINE.findall(text)):
        states = accumulate(events, apply_event, initial=ServerState(server))
        renderings = chain(renderings, map(state_to_text, states))
    for rendering in renderings:
        if not left:
            break
        left -= _facts(rendering.split("\n"))
    return not left


def _state_before(server: str, event: Event) -> ServerState:
    """Return a state without facts, but with the candidate that a decision needs."""
    if event["event"] not in {"approved", "rejected"} or "candidate" not in event:
        return ServerState(server)
    name = str(event["candidate"])
    return ServerState(server, candidate=name, candidates={name: Candidate("", 0, {})})


def _facts(lines: Iterable[str]) -> set[str]:
    return {line.strip(_PUNCTUATION) for line in lines} - {""}
