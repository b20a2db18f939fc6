"""Monotonic IDs that sort by time (in ULID form), and the acting person."""

from __future__ import annotations

import functools
import getpass
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Final

from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.base.git import git_text
from mcpfactory_pipeline.base.text import join_lines

_DIGITS: Final = (
    # Crockford's base 32, as in ULID; encoded IDs sort like the encoded numbers.
    "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
)
_RANDOM_BITS: Final = 80
_FORMAT: Final = "%Y-%m-%dT%H:%M:%SZ"

AUTOMATION: Final = "automation"  # actor of events that no person caused

Clock = Callable[[], datetime]


def new_id(after: str = "") -> str:
    """Return a new ID that is greater than `after`."""
    value = (time.time_ns() // 1_000_000 << _RANDOM_BITS) | secrets.randbits(_RANDOM_BITS)
    if after:
        value = max(value, _read(after) + 1)
    return _write(value)


def max_id_at(at: datetime) -> str:
    """Return the largest possible ID of a millisecond."""
    return _write((int(at.timestamp() * 1000) + 1 << _RANDOM_BITS) - 1)


def id_creation_time(text: str) -> float:
    """Return the creation time of an ID in seconds since the epoch, precise to the millisecond."""
    return (_read(text) >> _RANDOM_BITS) / 1000


def _write(value: int) -> str:
    return "".join(_DIGITS[(value >> shift) & 31] for shift in range(125, -1, -5))


def _read(text: str) -> int:
    value = 0
    for character in text:
        value = value << 5 | max(_DIGITS.find(character), 0)
    return value


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def format_time(at: datetime) -> str:
    """Format a time for an event: in UTC, without fractions of a second."""
    return at.astimezone(UTC).strftime(_FORMAT)


def parse_time(text: str) -> datetime:
    """Return the time of an event."""
    try:
        if len(text) == 20 and (text[4], text[7], text[10], text[19]) == ("-", "-", "T", "Z"):
            return datetime.fromisoformat(text)
    except ValueError:
        pass
    raise StateError(
        f"{text!r} is not a valid time", hint="restore the line: 'git log -p' shows earlier versions of the history"
    )


_ACTING: Final[ContextVar[tuple[str, str | None, str] | None]] = ContextVar("acting", default=None)


@contextmanager
def acting_as(name: str, confirmed: str | None = None, source: str = "") -> Iterator[None]:
    """Use `name` as the actor in the block, instead of the local user.

    `confirmed` names the person who confirmed the action.

    `source` describes the evidence of the actor's identity; "" means that nobody checked the identity.

    The actor applies to the current thread or task, and to all threads and tasks that copy the context.
    """
    token = _ACTING.set((name, confirmed, source))
    try:
        yield
    finally:
        _ACTING.reset(token)


def confirmed_by() -> str | None:
    """Return the person who confirmed the current action of another actor; None without a confirmation."""
    known = _ACTING.get()
    return known[1] if known else None


def current_actor() -> str:
    """Return the actor: from `acting_as`, else `MCPFACTORY_ACTOR`, else git's `user.name`, else the login name."""
    if known := _ACTING.get():
        return join_lines(known[0])
    return join_lines(os.environ.get("MCPFACTORY_ACTOR", "").strip() or _user())


def describe_actor() -> str:
    """Return a sentence that names the actor and the evidence for the actor's identity."""
    known = _ACTING.get()
    if known is None:
        return "MCPFACTORY_ACTOR sets your name"
    name, _, source = known
    return f"you are {name}" + (f" by {source}" if source else "")


@functools.cache
def _user() -> str:
    if name := git_text(None, "config", "user.name"):
        return name
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"
