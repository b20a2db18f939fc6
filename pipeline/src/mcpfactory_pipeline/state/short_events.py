"""Short form of a finished stage in a history: one line instead of two events.

A `stage.ended` line contains the start and the end of a stage. It omits facts that follow from other facts: times that
the IDs contain, the fingerprint, and entries that are equal in the stage's previous end (`base`). Readers get the two
full events back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from mcpfactory_pipeline.base.hashing import hash_named_texts
from mcpfactory_pipeline.base.ids import format_time, id_creation_time
from mcpfactory_pipeline.state.event_schema import (
    STAGE_ENDED,
    STAGE_START,
    Event,
    Step,
    stage_and_run_of,
    validate_event,
)

_FINISHED: Final = "stage.finished"
_DELTAS: Final = ("inputs", "made_from", "summary", "built", "artifacts")
_LOG: Final = "log"  # for the path of the stage's log
_HERE: Final = "./"  # for the folder of the candidate and stage
_SUFFIX: Final = 8  # characters of a base's ID; 40 random bits
_COMMON: Final = ("actor", "stage", "run")  # equal facts of start and end


def shorten(events: Iterable[Event], bases: Mapping[str, Event]) -> Iterator[Event]:
    """Yield the events with each pair of start and end as one line, if the line expands to these events.

    `bases` has earlier ends by stage. The base must be in the same history.
    """
    ordered = sorted(events, key=lambda event: str(event["id"]))
    starts: dict[Step, Event] = {stage_and_run_of(one): one for one in ordered if one["event"] == STAGE_START}
    known, short = dict(bases), dict[str, Event]()
    for end in (one for one in ordered if one["event"] == _FINISHED):
        start, base = starts.get(stage_and_run_of(end)), known.get(str(end["stage"]))
        known[str(end["stage"])] = end
        if start and (line := _shorten(start, end, base)):
            short |= {str(end["id"]): line, str(start["id"]): {}}
    yield from filter(None, (short.get(str(event["id"]), event) for event in ordered))


def _shorten(start: Event, end: Event, base: Event | None) -> Event | None:
    if not start["id"] < end["id"] or any(start.get(name) != end.get(name) for name in _COMMON):
        return None
    base = base if base and base["id"] < start["id"] and not _has_null(end) else None
    began = {name: fact for name, fact in start.items() if name not in {*_COMMON, "event"}}
    line = {**end, "event": STAGE_ENDED, "began": began}
    for facts in (line, began):
        if facts["at"] == _time_of(facts):
            del facts["at"]
    if line["fingerprint"] == hash_named_texts(end["inputs"]):
        del line["fingerprint"]
    for name in _DELTAS:
        if delta := _delta(_relative(base, name) if base else {}, _relative(end, name)):
            line[name] = delta
        else:
            line.pop(name, None)
    if base:
        line["base"] = base["id"][-_SUFFIX:]
    return line if expand(line, [base] if base else []) == (start, end) else None


def _time_of(event: Event) -> str:
    return format_time(datetime.fromtimestamp(id_creation_time(str(event["id"])), UTC))


def _has_null(event: Event) -> bool:
    """Return True if the event has a null, which means a removed entry in the short form."""
    return any(value is None for name in _DELTAS for value in event.get(name, {}).values())


def expand_all(events: Mapping[str, Event]) -> tuple[dict[str, Event], dict[str, ValueError]]:
    """Return the full events by ID, and the errors of short lines by ID. These lines stay in the result."""
    found, errors, ends = dict(events), dict[str, ValueError](), dict[str, list[Event]]()
    if all(event["event"] != STAGE_ENDED for event in events.values()):
        return found, errors
    for key in sorted(key for key, event in events.items() if event["event"] in {_FINISHED, STAGE_ENDED}):
        event, earlier = events[key], ends.setdefault(str(events[key]["stage"]), [])
        if event["event"] == STAGE_ENDED:
            try:
                start, event = expand(event, earlier)
                validate_event(event)
            except ValueError as error:
                errors[key] = error
                continue
            found |= {str(start["id"]): start, key: event}
        earlier.insert(0, event)
    return found, errors


def _delta(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    changed = {key: value for key, value in now.items() if key not in before or before[key] != value}
    return changed | dict.fromkeys(before.keys() - now.keys())


def _relative(event: Event, name: str) -> Mapping[str, Any]:
    """Return the entries of a member without the parts that change with each candidate."""
    entries: Mapping[str, Any] = event.get(name, {})
    if name == "inputs" and entries.get("candidate") == event.get("candidate"):
        return {**entries, **({"candidate": ""} if "candidate" in entries else {})}
    if name != "artifacts":
        return entries
    log, folder = f"logs/{event['stage']}.log", f"{event.get('candidate')}/{event['stage']}/"
    return {
        _LOG if path == log else _HERE + path.removeprefix(folder) if path.startswith(folder) else path: value
        for path, value in entries.items()
    }


def _absolute(event: Event, name: str, entries: Mapping[str, Any]) -> dict[str, Any]:
    """Reverse `_relative`."""
    if name == "inputs" and entries.get("candidate") == "":
        return {**entries, "candidate": event.get("candidate")}
    if name != "artifacts":
        return dict(entries)
    log, folder = f"logs/{event['stage']}.log", f"{event.get('candidate')}/{event['stage']}/"
    return {
        log if path == _LOG else folder + path.removeprefix(_HERE) if path.startswith(_HERE) else path: value
        for path, value in entries.items()
    }


def expand(line: Event, ends: Iterable[Event]) -> tuple[Event, Event]:
    """Return the start and the end of a stage. `ends` has the earlier ends of the stage, newest first.

    Raises:
        ValueError: the line needs an event that is missing.
    """
    began, base = line["began"], None
    if "base" in line:
        base = next((end for end in ends if str(end["id"]).endswith(line["base"])), None)
    if "base" in line and base is None:
        raise ValueError(f"the earlier event {line['base']} is missing")
    common = {name: line[name] for name in _COMMON}
    start = {**common, **began, "event": STAGE_START, "at": began.get("at") or _time_of(began)}
    end = {name: fact for name, fact in line.items() if name not in {"began", "base"}}
    end |= {"event": _FINISHED, "at": line.get("at") or _time_of(line)}
    for name in _DELTAS:
        facts = {**(_relative(base, name) if base else {}), **line.get(name, {})}
        kept = {key: value for key, value in facts.items() if value is not None} if base else facts
        kept = _absolute(end, name, kept)
        if kept or name in {"inputs", "summary", "artifacts"}:
            end[name] = kept
        else:
            end.pop(name, None)
    end.setdefault("fingerprint", hash_named_texts(end["inputs"]))
    return start, end
