"""Validation of events and their order.

Unknown fields are kept, because a newer version of mcpfactory may have written them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

from pydantic_core import SchemaValidator, ValidationError, core_schema

from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.base.ids import format_time, max_id_at, utc_now

UPGRADE: Final = "update mcpfactory: a newer version wrote this"
# Tolerance for clock differences between machines.
_AHEAD: Final = timedelta(minutes=5)

Event = Mapping[str, Any]
Members = Mapping[str, core_schema.CoreSchema]

_TEXT: Final = core_schema.str_schema(strict=True)
_COUNT: Final = core_schema.int_schema(strict=True)
# Integers first, so that 1 does not become 1.0.
_NUMBER: Final = core_schema.union_schema([_COUNT, core_schema.float_schema(strict=True)], mode="left_to_right")
_TEXTS: Final = core_schema.list_schema(_TEXT, strict=True)
_TEXT_BY_NAME: Final = core_schema.dict_schema(_TEXT, _TEXT, strict=True)
_ANYTHING: Final = core_schema.dict_schema(_TEXT, core_schema.any_schema(), strict=True)
_ID: Final = core_schema.str_schema(strict=True, pattern=r"^[0-9A-HJKMNP-TV-Z]{26}$")
_MOMENT: Final = core_schema.str_schema(
    strict=True, pattern=r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\dZ$"
)
_MANIFEST: Final = core_schema.str_schema(strict=True, pattern=r"^[0-9a-f]{16}$")
_OUTCOME: Final = core_schema.literal_schema(["passed", "failed", "errored", "interrupted", "inconclusive"])


def _record(needed: Members, optional: Members) -> core_schema.CoreSchema:
    fields = {name: core_schema.typed_dict_field(member, required=False) for name, member in optional.items()}
    fields |= {name: core_schema.typed_dict_field(member) for name, member in needed.items()}
    return core_schema.typed_dict_schema(fields, strict=True, extra_behavior="allow")


_COVERAGE: Final = _record(
    {}, {"operations": _NUMBER, "made": _NUMBER, "left_out": _TEXT_BY_NAME, "missing": _NUMBER, "share": _NUMBER}
)
_SUMMARY: Final = _record(
    {},
    {
        **dict.fromkeys(("tests", "passed", "failed", "skipped", "findings", "critical", "score"), _NUMBER),
        **dict.fromkeys(("deselected", "tool_tests", "tools_run", "declared", "waived"), _NUMBER),
        **dict.fromkeys(("tools", "operations", "problems", "errors", "bytes", "exit"), _NUMBER),
        "gates": _TEXTS,
        "waived_rules": _TEXTS,
        "coverage": _COVERAGE,
        "lost": core_schema.dict_schema(_TEXT, _COUNT, strict=True),
    },
)
_BUILT: Final = _record({"version": _TEXT, "files": _TEXT_BY_NAME}, {"facts": _ANYTHING})
_STEP: Final[Members] = {"stage": _TEXT, "run": _TEXT}
_OFFER: Final[Members] = {"channel": _TEXT, "candidate": _TEXT, "version": _TEXT}
_DECIDED: Final[Members] = {"channel": _TEXT, "candidate": _TEXT}
_ABOUT_STAGE: Final[Members] = {"stage": _TEXT, "shown": _TEXT_BY_NAME, "restart": _TEXT}
_REASON: Final[Members] = {"reason": _TEXT}

COMPACTED: Final = "compacted"

# Type of event → required fields and optional fields.
EVENT_KINDS: Final[Mapping[str, tuple[Members, Members]]] = {
    "stage.started": (_STEP, {"pid": _COUNT, "reasons": _TEXTS}),  # only in old histories and notes of running stages
    "stage.finished": (
        {**_STEP, "outcome": _OUTCOME, "inputs": _TEXT_BY_NAME},
        {
            "message": _TEXT,
            "seconds": _NUMBER,
            "summary": _SUMMARY,
            "artifacts": _TEXT_BY_NAME,
            "manifest": _MANIFEST,
            "candidate": _TEXT,
            "built": _BUILT,
            "commit": _TEXT,
            "made_from": _ANYTHING,
            "channel": _TEXT,
            "version": _TEXT,
        },
    ),
    "stage.interrupted": (_STEP, {"message": _TEXT}),
    "promoted": (_OFFER, _REASON),
    "rolled-back": (_OFFER, {"stage": _TEXT, **_REASON}),
    # A decision is about a channel or about a stage.
    "approved": ({}, {**_DECIDED, **_ABOUT_STAGE, "version": _TEXT, "breaking": _TEXTS, **_REASON}),
    "rejected": ({}, {**_DECIDED, **_ABOUT_STAGE, "version": _TEXT, **_REASON}),
    "held": ({"channel": _TEXT}, {"stage": _TEXT, **_REASON}),
    "released": ({"channel": _TEXT}, _REASON),
    "retired": ({}, {"channel": _TEXT, "gone": _TEXT, "kept": core_schema.bool_schema(strict=True), **_REASON}),
    "revived": ({}, _REASON),
    "renamed": ({"previous": _TEXT}, _REASON),
    "waived": ({"rule": _TEXT}, {**dict.fromkeys(("until", "person", "tool", "offer"), _TEXT), **_REASON}),
    COMPACTED: (
        {"count": _COUNT, "sha256": _TEXT, "numbers": core_schema.dict_schema(_TEXT, _COUNT, strict=True)},
        {},
    ),
    "publish.started": ({"target": _TEXT, **_OFFER}, {}),
    "published": ({"target": _TEXT, **_OFFER}, {"digest": _TEXT, "evidence": _TEXT_BY_NAME}),
}
# Details in a manifest (manifest.py). Another machine may have written the file.
MANIFEST: Final = SchemaValidator(
    _record({"artifacts": _TEXT_BY_NAME, "reasons": _TEXTS, "made_from": _TEXT_BY_NAME}, {})
)
_COMMON: Final[Members] = {"id": _ID, "at": _MOMENT, "actor": _TEXT}
# Fields that are read without a check of the event type, so every event must have valid values for them.
_ABOUT: Final[Members] = dict.fromkeys(("stage", "run", "outcome", "channel", "candidate", "target", "rule"), _TEXT)


@functools.cache
def _events() -> SchemaValidator:
    kinds = {
        kind: _record(
            {**_COMMON, "event": core_schema.literal_schema([kind]), **needed},
            {"confirmed": _TEXT, **_ABOUT, **optional},
        )
        for kind, (needed, optional) in EVENT_KINDS.items()
    }
    return SchemaValidator(core_schema.tagged_union_schema(kinds, "event"))


def newest_valid_times() -> Mapping[str, str]:
    """Return the largest `id` and `at` that an event may have now."""
    at = utc_now() + _AHEAD
    return {"id": max_id_at(at), "at": format_time(at)}


def read_event(line: bytes, limits: Mapping[str, str]) -> Event:
    """Parse a line of a history. `limits` is the result of `newest_valid_times`.

    Raises:
        ValueError: the event is invalid. `describe_invalid_event` returns the reason.
    """
    event: Event = _events().validate_json(line)
    _require_past(event, limits)
    return event


def _require_past(event: Event, limits: Mapping[str, str]) -> None:
    """Refuse an event from the future, because the event would falsify soak time."""
    for member, limit in limits.items():
        if event[member] > limit:
            raise ValueError(
                f"{member} is {event[member]!r}, later than this machine's clock ({format_time(utc_now())})"
            )


def check_event(event: Event, where: str) -> None:
    """Validate an event before it is written."""
    try:
        _events().validate_python(event)
        _require_past(event, newest_valid_times())
    except ValueError as error:
        raise StateError(
            f"{where}: {event.get('event')} cannot be recorded: {describe_invalid_event(error)}"
        ) from error


def unknown_event_kind(error: ValueError) -> str:
    """Return the type of an event if this version does not know the type. For other errors, return ""."""
    found = _first(error)
    return str(found["ctx"]["tag"]) if found.get("type") == "union_tag_invalid" else ""


def describe_invalid_event(error: ValueError) -> str:
    """Describe the first invalid field of an event."""
    if not (found := _first(error)):
        return str(error)
    member = ".".join(str(part) for part in found["loc"][1:])
    if found["type"] == "missing":
        return f"{member} is missing"
    if found["type"] == "string_pattern_mismatch":
        return f"{member} is {found['input']!r:.60}"
    return f"{member}: {found['msg']}" if member else str(found["msg"])


def _first(error: ValueError) -> Mapping[str, Any]:
    if not isinstance(error, ValidationError):
        return {}
    first: Mapping[str, Any] = error.errors(include_url=False)[0]
    return first


STAGE_START: Final = "stage.started"
RUN_DIED: Final = "the run died while this stage ran"  # message of a stage whose end was not recorded
STAGE_ENDS: Final = frozenset({"stage.finished", "stage.interrupted"})

Step = tuple[object, object]  # (stage, run)


def describe_invalid_order(events: Iterable[Event]) -> Iterator[str]:
    """Describe invalid stage ends: a second end in one run, or an end with the manifest of another end.

    A run repeats a stage only after an error. Two clones can record that a run was interrupted, although the run
    continued in one of these clones. Therefore, an end may follow an interruption, and an interruption may follow an
    end.
    """
    outcomes = dict[Step, str]()  # outcome of each step's last end
    manifests = dict[str, Step]()
    for event in events:
        step = event.get("stage"), event.get("run")
        if event["event"] == "stage.finished":
            if outcomes.get(step, "errored") != "errored":
                yield f"stage.finished ({event['id']}): {event['stage']} had ended in run {event['run']}"
            elif (known := manifests.setdefault(str(event.get("manifest", event["id"])), step)) != step:
                yield f"stage.finished ({event['id']}): it has the manifest of {known[0]} in run {known[1]}"
            outcomes[step] = str(event["outcome"])
        elif event["event"] in {STAGE_START, "stage.interrupted"}:
            outcomes.pop(step, None)
