"""What whoever operates a server asks of it, as methods of `Server`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from mcpfactory_runtime.server.readiness import Readiness

__all__ = ["Operated"]

Function = TypeVar("Function", bound=Callable[..., Any])


class Operated:
    """A server as it is seen from outside (docs/how-to/observe.md)."""

    def __init__(self) -> None:
        self.readiness = Readiness()

    def ready_check(self, function: Function) -> Function:
        """Decorate a function that says whether the server can do its work now, for `/ready` over HTTP.

        It takes no parameters; it fails by raising or by returning False. `async def` runs on the event loop, `def` in a worker
        thread. An outcome is kept for a second; a check that takes longer than five seconds has failed.

        Raises:
            TypeError: it has parameters.
            ValueError: there is a check of its name.
        """
        self.readiness.add(function)
        return function
