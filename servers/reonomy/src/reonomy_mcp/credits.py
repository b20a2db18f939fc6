"""Consent before details of many properties are billed, and reading of details without losing billed results."""

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
_ASK_ABOVE: Final = 50  # properties whose details are read without consent
_WINDOW: Final = 3600.0  # seconds for which they are counted
_AT_ONCE: Final = 250  # properties per request, a limit of the API

_unasked: deque[tuple[float, int]] = deque()
"""(monotonic time, number of properties) of reads without consent, by all clients of this process."""

_permitted: ContextVar[bool] = ContextVar("_permitted", default=False)


@contextmanager
def permitted() -> Iterator[None]:
    """Skip the check of the generated tools within the block: the properties were counted, or the user has agreed."""
    token = _permitted.set(True)
    try:
        yield
    finally:
        _permitted.reset(token)


@dataclass(frozen=True, slots=True)
class Read:
    """Details of properties.

    Attributes:
        rows: details of the properties that were read.
        unread: IDs of requested properties that were not read.
        note: reason why they were not read, or "".
    """

    rows: list[Row]
    unread: list[str]
    note: str


async def details(ctx: Context, ids: list[str], types: list[str], confirm: str) -> Read:
    """Return details of properties, after consent if there are many.

    If a request fails, return what was read before, because it was billed.

    Args:
        ctx: context of the call.
        ids: IDs of the properties.
        types: detail types.
        confirm: code from a refusal; used only if the client cannot ask the user.

    Raises:
        ToolError: consent is missing, or nothing could be read.
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
    why = failure or " Reonomy returned nothing for them."
    again = " These results were billed. To read the rest, call again with only the IDs in `unread`, so that only these are billed."
    return f"{unread} of {of} properties were not read.{why}{again if failure else ''}"


async def asked(call: ToolCall) -> None:
    """Ask for consent before a generated tool reads details above the limit; all tools share the count.

    Raises:
        ToolError: the user does not agree, or the client cannot ask.
    """
    if not _permitted.get():
        given = call.arguments
        await agreed(call.context, given["property_ids"] if "property_ids" in given else [given["property_id"]], None)


async def agreed(ctx: Context, ids: list[str], confirm: str | None) -> None:
    """Ask for consent to read details, if the properties of the last hour exceed the limit.

    The count covers an hour, so that many small calls cannot avoid the limit. Consent resets it.

    Args:
        ctx: context of the call.
        ids: IDs of the properties.
        confirm: code from a refusal; None if the tool has no such argument.

    Raises:
        ToolError: consent is missing, or REONOMY_ASK_ABOVE is invalid.
    """
    wanted, limit = sorted({one.casefold() for one in ids}), _limit()
    many = f"{len(wanted)} {'property' if len(wanted) == 1 else 'properties'}"
    if await ctx.consent(
        f"Read details of {many}, each of which is billed",
        *wanted,
        confirm=confirm,
        otherwise="Nothing was read",
        hint="request fewer, wait an hour, or use who_owns, comparable_sales or maturing_mortgages, whose refusal has a code for confirm",
        unless=lambda: _few(len(wanted), limit),
    ):
        _unasked.clear()


def _few(count: int, limit: int) -> bool:
    """Count properties if they are within the limit; return False otherwise."""
    now = time.monotonic()
    while _unasked and _unasked[0][0] <= now - _WINDOW:
        _unasked.popleft()
    if sum(before for _, before in _unasked) + count > limit:
        return False
    _unasked.append((now, count))
    return True


def _limit() -> int:
    """Return the number of properties per hour that need no consent.

    Raises:
        ToolError: REONOMY_ASK_ABOVE is invalid.
    """
    given = os.environ.get(ASK_ABOVE, "").strip()
    if not given:
        return _ASK_ABOVE
    if not (given.isascii() and given.isdigit()):
        raise ToolError(
            f"Nothing was read: {ASK_ABOVE} is {given[:20]!r}, which is not a number of properties.\n"
            "hint: the operator must set it to 0 (always ask) or more, or unset it"
        )
    return int(given)
