"""Who has the page of a decision open: people who are logged in. In memory only, and gone some seconds after they leave."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from mcpfactory_pipeline.base.ids import Clock, format_time, utc_now
from mcpfactory_pipeline.plan.policy import person_key

__all__ = ["Onlooker", "Presence"]

_STAYS: Final = (
    15.0  # seconds for which a page counts as open once it was loaded: without scripts nobody says when it is left
)
_LEAVES: Final = 5.0  # seconds after the last stream of a page has ended: who loads it anew was there all the time


@dataclass(frozen=True, slots=True)
class Onlooker:
    """Somebody who looks at the same page, and since when."""

    name: str
    since: str


@dataclass(slots=True)
class _Look:
    onlooker: Onlooker
    until: float
    streams: int = 0


class Presence:
    """Who looks at which page, by its path. Used from several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, now: Clock = utc_now) -> None:
        self._clock, self._now, self._guard = clock, now, threading.Lock()
        self._looks: dict[str, dict[str, _Look]] = {}

    def look(self, path: str, person: str) -> None:
        """Note that somebody loaded a page."""
        with self._guard:
            look = self._look(path, person)
            look.until = max(look.until, self._clock() + _STAYS)

    @contextmanager
    def watching(self, path: str, person: str) -> Iterator[None]:
        """Within the block somebody has the page open, and follows it."""
        with self._guard:
            self._look(path, person).streams += 1
        try:
            yield
        finally:
            with self._guard:
                look = self._look(path, person)
                look.streams -= 1
                look.until = max(look.until, self._clock() + _LEAVES)

    def others(self, path: str, person: str) -> tuple[Onlooker, ...]:
        """Return who else looks at a page, who came first before the others."""
        with self._guard:
            self._forget()
            looks = self._looks.get(path, {})
            found = [look.onlooker for key, look in looks.items() if key != person_key(person)]
        return tuple(sorted(found, key=lambda one: (one.since, one.name)))

    def mark(self, path: str) -> str:
        """Return a short text that is another one when somebody comes to a page, or leaves it; it says nothing of who."""
        named = sorted((one.name, one.since) for one in self.others(path, ""))
        return hashlib.sha256(json.dumps(named).encode()).hexdigest()[:16]

    def _look(self, path: str, person: str) -> _Look:
        self._forget()
        looks = self._looks.setdefault(path, {})
        new = _Look(Onlooker(person, format_time(self._now())), self._clock())
        return looks.setdefault(person_key(person), new)

    def _forget(self) -> None:
        """Drop who has left: what is kept is of the last seconds."""
        now = self._clock()
        for path, looks in list(self._looks.items()):
            for key in [key for key, look in looks.items() if not look.streams and look.until < now]:
                del looks[key]
            if not looks:
                del self._looks[path]
