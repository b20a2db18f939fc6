"""What a server answers over HTTP besides MCP: paths, methods and the functions for them. Pure; `transports.http.routes` serves them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["HttpRoute", "HttpRoutes"]

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_TAKEN: Final = ("/health", "/ready", "/metrics")
_OAUTH: Final = "/.well-known/oauth-"


@dataclass(frozen=True, slots=True)
class HttpRoute:
    """One path.

    Attributes:
        path: as Starlette writes it: `/hooks/{name}`, `/files/{path:path}`.
        methods: that it answers.
        handler: takes a `starlette.requests.Request`.
        public: it is for everybody; otherwise for who may call the server.
    """

    path: str
    methods: frozenset[str]
    handler: Callable[..., Any]
    public: bool


class HttpRoutes:
    """The routes of one server, in their order."""

    def __init__(self) -> None:
        self._routes: list[HttpRoute] = []

    def __iter__(self) -> Iterator[HttpRoute]:
        return iter(self._routes)

    def __len__(self) -> int:
        return len(self._routes)

    def add(self, route: HttpRoute) -> None:
        """Add one.

        Raises:
            ValueError: its path or a method is none, is the runtime's own, or is taken.
        """
        path = route.path
        if not path.startswith("/"):
            raise ValueError(f"the path {path!r} does not begin with a slash\nhint: @server.route('/{path}')")
        if unknown := sorted(route.methods - _METHODS):
            raise ValueError(f"no method of HTTP: {', '.join(unknown)}\nhint: one of {', '.join(sorted(_METHODS))}")
        if not route.methods:
            raise ValueError(f"{path} answers no method\nhint: methods=['GET']")
        if path.rstrip("/") in _TAKEN or path.startswith(_OAUTH):
            raise ValueError(
                f"{path} is answered by the server itself\nhint: docs/reference/transports.md says with what"
            )
        self.check([route])
        self._routes.append(route)

    def check(self, routes: Iterable[HttpRoute]) -> None:
        """Look whether others could be added.

        Raises:
            ValueError: a path is taken for one of its methods.
        """
        for route in routes:
            for known in self._routes:
                if known.path == route.path and (both := known.methods & route.methods):
                    raise ValueError(f"{' and '.join(sorted(both))} {route.path} is taken\nhint: another path")
