"""HTTP routes in addition to MCP, and readiness checks."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from inspect import Parameter, isawaitable, iscoroutinefunction, signature
from typing import Any, Final

from mcpfactory_runtime.server.threads import in_thread

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_TAKEN: Final = ("/health", "/ready", "/metrics")
_OAUTH: Final = "/.well-known/oauth-"


@dataclass(frozen=True, slots=True)
class HttpRoute:
    """An HTTP route.

    Attributes:
        path: path in Starlette's syntax, such as `/hooks/{name}` or `/files/{path:path}`.
        methods: accepted HTTP methods.
        handler: function that takes a `starlette.requests.Request`.
        public: True also permits callers without authorization.
    """

    path: str
    methods: frozenset[str]
    handler: Callable[..., Any]
    public: bool


class HttpRoutes:
    """The routes of one server, in the order of registration."""

    def __init__(self) -> None:
        self._routes: list[HttpRoute] = []

    def __iter__(self) -> Iterator[HttpRoute]:
        return iter(self._routes)

    def __len__(self) -> int:
        return len(self._routes)

    def add(self, route: HttpRoute) -> None:
        """Add a route."""
        path = route.path
        if not path.startswith("/"):
            raise ValueError(f"the path {path!r} does not begin with a slash\nhint: write @server.route('/{path}')")
        if unknown := sorted(route.methods - _METHODS):
            raise ValueError(
                f"unknown HTTP method: {', '.join(unknown)}\nhint: use one of {', '.join(sorted(_METHODS))}"
            )
        if not route.methods:
            raise ValueError(f"{path} has no HTTP methods\nhint: set methods=['GET']")
        if path.rstrip("/") in _TAKEN or path.startswith(_OAUTH):
            raise ValueError(
                f"{path} is reserved for the server itself\nhint: choose another path; see docs/reference/transports.md"
            )
        self.check([route])
        self._routes.append(route)

    def check(self, routes: Iterable[HttpRoute]) -> None:
        """Raise ValueError if a method of a new route is already taken for the path."""
        for route in routes:
            for known in self._routes:
                if known.path == route.path and (both := known.methods & route.methods):
                    raise ValueError(
                        f"{' and '.join(sorted(both))} {route.path} is already taken\nhint: choose another path"
                    )


log = logging.getLogger(__name__)

_PATIENCE: Final = 5.0  # maximum seconds for one check
_KEEP: Final = 1.0  # seconds to cache outcomes, because anyone may send probes and checks may be slow
_NEEDED: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)

Check = Callable[[], Any]


class ReadinessChecks:
    """Readiness checks of one server. Use this class only in the event loop.

    Concurrent probes share one run of a slow check. A check that takes longer than `patience` fails until the check
    returns.
    """

    def __init__(
        self, *, patience: float = _PATIENCE, keep: float = _KEEP, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._patience = patience
        self._keep = keep
        self._clock = clock
        self._checks: dict[str, Check] = {}
        self._calls: dict[str, asyncio.Task[Any]] = {}
        self._failing: set[str] = set()
        self._kept: tuple[float, dict[str, bool]] | None = None
        self._parts: list[tuple[ReadinessChecks, str]] = []

    def add(self, check: Check) -> None:
        """Add a `def` or `async def` function without parameters.

        The check fails if the function raises an exception or returns False.
        """
        name = getattr(check, "__name__", repr(check))
        needed = [one.name for one in signature(check).parameters.values() if one.kind in _NEEDED]
        if needed:
            raise TypeError(
                f"ready check {name} has parameters: {', '.join(needed)}\nhint: remove the parameters; the check is "
                "called without arguments"
            )
        if name in self._checks:
            raise ValueError(f"ready check {name!r} already exists\nhint: give the function another name")
        self._checks[name] = check

    def include(self, part: ReadinessChecks, prefix: str) -> None:
        """Include the checks of a mounted server, with a prefix before the names."""
        self._parts.append((part, prefix))

    async def run_checks(self) -> dict[str, bool]:
        """Return the success of each check by name."""
        found = await self._look()
        for part, prefix in self._parts:
            for name, succeeded in (await part.run_checks()).items():
                key = f"{prefix}{name}"
                found = {**found, key: succeeded and found.get(key, True)}
        return found

    async def _look(self) -> dict[str, bool]:
        if not self._checks:
            return {}
        if self._kept is not None and self._clock() < self._kept[0]:
            return self._kept[1]
        outcomes = await asyncio.gather(*(self._succeeds(name) for name in self._checks))
        found = dict(zip(self._checks, outcomes, strict=True))
        self._kept = (self._clock() + self._keep, found)
        return found

    def stop(self) -> None:
        """Cancel running checks at shutdown."""
        for call in self._calls.values():
            call.cancel()
        self._calls.clear()
        self._kept = None
        for part, _ in self._parts:
            part.stop()

    async def _succeeds(self, name: str) -> bool:
        call = self._calls.get(name)
        if call is None or call.done():
            call = self._calls[name] = asyncio.create_task(_call(self._checks[name]))
        await asyncio.wait([call], timeout=self._patience)
        failure = _failure(call, self._patience)
        if failure and name not in self._failing:  # log a failure once, not at each probe
            log.warning("ready check %s %s", name, failure)
        (self._failing.add if failure else self._failing.discard)(name)
        return not failure


async def _call(check: Check) -> Any:
    result = check() if iscoroutinefunction(check) else await in_thread(check, {})
    return await result if isawaitable(result) else result  # a lambda may return an awaitable


def _failure(call: asyncio.Task[Any], patience: float) -> str:
    if not call.done():
        return f"has not returned within {patience:g} seconds"
    if call.cancelled():
        return "was cancelled"
    error = call.exception()
    if error is not None:
        return f"raised {type(error).__name__}: {error}"
    result = call.result()
    return "" if result is None or result else f"returned {result!r}"
