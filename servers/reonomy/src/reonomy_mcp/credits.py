"""Property credits: details of many properties are read only when a person agrees, and nothing that was billed is thrown away."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from mcpfactory_runtime import Context, ToolCall, ToolError

from .answers import Row, properties_of

__all__ = ["ASK_ABOVE", "Read", "agreed", "asked", "details", "permitted"]

ASK_ABOVE: Final = "REONOMY_ASK_ABOVE"
_ASK_ABOVE: Final = 50  # properties whose details are read without a question
_WINDOW: Final = 3600.0  # seconds in which they are counted
_AT_ONCE: Final = 250

_unasked: deque[tuple[float, int]] = deque()
"""When details of how many properties were read without a question, by all callers of this process."""

_permitted: ContextVar[bool] = ContextVar("_permitted", default=False)


@contextmanager
def permitted() -> Iterator[None]:
    """Let tools of Reonomy's own read details within: these properties were counted, or a person has agreed."""
    token = _permitted.set(True)
    try:
        yield
    finally:
        _permitted.reset(token)


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
    ids = list(dict.fromkeys(one.casefold() for one in ids))
    await agreed(ctx, ids, confirm)
    rows: list[Row] = []
    failure = ""
    for first in range(0, len(ids), _AT_ONCE):
        part = ids[first : first + _AT_ONCE]
        try:
            with permitted():
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


async def asked(call: ToolCall) -> None:
    """Count what Reonomy's own tools read together with what ours read, and let a person agree above the number.

    Raises:
        ToolError: the person does not agree, or cannot be asked.
    """
    if not _permitted.get():
        given = call.arguments
        await agreed(call.context, given["property_ids"] if "property_ids" in given else [given["property_id"]], None)


async def agreed(ctx: Context, ids: list[str], confirm: str | None) -> None:
    """Return when details of these properties may be read: they are few, or a person agreed.

    What was read without a question is counted for an hour, so that many small calls are one large one; after a yes the count begins anew.

    Args:
        ctx: of the call.
        ids: of the properties.
        confirm: the code that the caller gave; None where the tool has no such argument.

    Raises:
        ToolError: the person does not agree, or has not been asked; or the owner's setting is no number.
    """
    wanted, limit = sorted({one.casefold() for one in ids}), _limit()
    many = f"{len(wanted)} {'property' if len(wanted) == 1 else 'properties'}"
    if await ctx.consent(
        f"Read details of {many}, each of which is billed",
        *wanted,
        confirm=confirm,
        otherwise="Nothing was read",
        hint="ask for fewer, wait an hour, or take who_owns, comparable_sales or maturing_mortgages, whose refusal gives a code for confirm",
        unless=lambda: _few(len(wanted), limit),
    ):
        _unasked.clear()


def _few(count: int, limit: int) -> bool:
    """Count properties that are read without a question, if they may be."""
    now = time.monotonic()
    while _unasked and _unasked[0][0] <= now - _WINDOW:
        _unasked.popleft()
    if sum(before for _, before in _unasked) + count > limit:
        return False
    _unasked.append((now, count))
    return True


def _limit() -> int:
    """Return details of how many properties may be read without a question.

    Raises:
        ToolError: the owner's setting is no such number.
    """
    given = os.environ.get(ASK_ABOVE, "").strip()
    if not given:
        return _ASK_ABOVE
    if not (given.isascii() and given.isdigit()):
        raise ToolError(
            f"Nothing was read: {ASK_ABOVE} is {given[:20]!r}, which is no number of properties.\n"
            "hint: the person who runs this server sets it to 0 (always ask) or more, or leaves it out"
        )
    return int(given)
