"""Property credits: details of many properties are read only when a person agrees, and nothing that was billed is thrown away."""

from __future__ import annotations

import os
import secrets
import time
from collections import deque
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from mcpfactory_runtime import Context, McpError, ToolError

from .answers import Row, properties_of

__all__ = ["ASK_ABOVE", "Read", "agreed", "details"]

ASK_ABOVE: Final = "REONOMY_ASK_ABOVE"
_ASK_ABOVE: Final = 50  # properties whose details are read without a question
_WINDOW: Final = 3600.0  # seconds in which they are counted
_AT_ONCE: Final = 250
_ROOM: Final = 1000  # questions that may be open
_FORM: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"go_ahead": {"type": "boolean", "title": "Go ahead", "default": False}},
    "required": ["go_ahead"],
}

_unasked: deque[tuple[float, int]] = deque()
"""When details of how many properties were read without a question, by all callers of this process."""

_open: dict[str, str] = {}
"""Digests of the sets of properties that a question is open for, each with the code that its refusal names."""


@dataclass(frozen=True, slots=True)
class Read:
    """Details of properties.

    Attributes:
        rows: what was read.
        unread: ids of properties that were asked for and not read.
        note: why these were not; "" when there are none.
    """

    rows: list[Row]
    unread: list[str]
    note: str


async def details(ctx: Context, ids: list[str], types: list[str], confirm: str) -> Read:
    """Return details of properties; a person is asked first when these are many.

    What was read before a failure is billed, and so is given.

    Args:
        ctx: of the call.
        ids: of the properties.
        types: what is wanted.
        confirm: what the caller gave as `confirm`; counts only where nobody can be asked.

    Raises:
        ToolError: the person does not agree, or has not been asked; or nothing could be read.
    """
    ids = list(dict.fromkeys(ids))
    await agreed(ctx, ids, confirm)
    rows: list[Row] = []
    failure = ""
    for first in range(0, len(ids), _AT_ONCE):
        part = ids[first : first + _AT_ONCE]
        try:
            rows += properties_of(await ctx.call("get_many_properties", property_ids=part, detail_type=types))
        except ToolError as error:
            if not rows:
                raise
            failure = f" Reading stopped: {error}"
            break
        ctx.request_state["read"] = len(rows)
        await ctx.report_progress(len(rows), len(ids), f"{len(rows)} of {len(ids)} properties")
    read = {row["id"].casefold() for row in rows}
    unread = [one for one in ids if one.casefold() not in read]
    return Read(rows, unread, _note(len(unread), len(ids), failure) if unread else "")


def _note(unread: int, of: int, failure: str) -> str:
    why = failure or " Reonomy gave nothing for them."
    again = " What is here was billed. To read the rest, call again with only the ids of `unread`: then only these are billed."
    return f"{unread} of {of} properties were not read.{why}{again if failure else ''}"


async def agreed(ctx: Context, ids: list[str], confirm: str) -> None:
    """Return when details of these properties may be read: they are few, or a person agreed.

    What was read without a question is counted for an hour, so that many small calls are one large one. An open question stays one when
    the count falls: of a handler that is run again with the person's answer, the answer decides.

    Raises:
        ToolError: the person does not agree, or has not been asked.
    """
    wanted, now = sorted({one.casefold() for one in ids}), time.monotonic()
    key = sha256("\n".join(wanted).encode()).hexdigest()
    while _unasked and _unasked[0][0] <= now - _WINDOW:
        _unasked.popleft()
    before = sum(count for _, count in _unasked)
    if key not in _open and before + len(wanted) <= _limit():
        _unasked.append((now, len(wanted)))
        return
    if key not in _open and len(_open) >= _ROOM:
        del _open[next(iter(_open))]
    code = _open.setdefault(key, secrets.token_hex(4))
    many = f"{len(wanted)} {'more ' if before else ''}{'property' if len(wanted) == 1 else 'properties'}"
    since = f"; {before} were read without a question within an hour" if before else ""
    await _consent(ctx, f"Read details of {many}, each of which is billed{since}", confirm == code, code, key)
    _unasked.clear()


async def _consent(ctx: Context, what: str, confirmed: bool, code: str, key: str) -> None:
    declared = ctx.client_capabilities.get("elicitation")
    if isinstance(declared, dict) and (not declared or "form" in declared):
        try:
            answer = await ctx.elicit(f"{what}. Go ahead?", _FORM, key=f"read-{key}")
            yes = answer.accepted and answer.content.get("go_ahead") is True
        except McpError:  # an answer that does not fit the form is no yes
            yes = False
        _open.pop(key, None)
        if not yes:
            raise ToolError(f"Nothing was read: the person did not agree. ({what})")
    elif confirmed:
        _open.pop(key, None)
    else:
        raise ToolError(
            f"Nothing was read yet; a person must agree to this first: {what}\n"
            f'hint: ask for fewer, or ask the person; when they agree, call again for the same properties with confirm="{code}"'
        )


def _limit() -> int:
    given = os.environ.get(ASK_ABOVE, "")
    return int(given) if given.isdigit() else _ASK_ABOVE
