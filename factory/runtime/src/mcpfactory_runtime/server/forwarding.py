"""A tool call that is sent on to where its tool is: another server, say. Nothing waits for its answer but a row in a table.

A handler that only sends a call on costs a task, a future and a context for every call, which is most of what a gateway does.
`Forward` is what is left without them. What is more than one request and its result (questions, errors) is a handler's: the
call is then handled like any other, by a task.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol

from mcpfactory_runtime.protocol.errors import INTERNAL_ERROR, McpError

if TYPE_CHECKING:
    from mcpfactory_runtime.protocol.connection import Call

__all__ = ["Done", "Forward", "Forwarder"]

Json = dict[str, Any]
Done = Callable[["Call", "Json | McpError | Awaitable[Json]"], None]

log = logging.getLogger("mcpfactory_runtime")


class Forward:
    """One call on its way. Event loop only.

    Args:
        call: what the client asked.
        arguments: of the tool, unchecked.
        http: the HTTP request that it came with; None on other transports.
        make_context: makes the context of the request, if somebody wants it.
        finish: makes the answer of the result that came; of None, an awaitable of what the tool's handler returns.
        done: takes the answer.

    Attributes:
        done: takes the answer.
        withdraw: tells the other side that nobody waits for the call any more; set by who sent it.
        run: returns the result of the tool, or the error; set where the thread that asks may run it.
    """

    __slots__ = (
        *("arguments", "call", "done", "http", "run", "withdraw"),
        *("_cancelled", "_context", "_finish", "_make_context"),
    )

    def __init__(
        self,
        call: Call,
        arguments: Json,
        http: object,
        *,
        make_context: Callable[[], Any],
        finish: Callable[[Forward, Json | None], Json | Awaitable[Json]],
        done: Done,
    ) -> None:
        self.call = call
        self.arguments = arguments
        self.http = http
        self.withdraw: Callable[[], None] | None = None
        self.run: Callable[[], Json | McpError] = _nothing
        self._make_context = make_context
        self._context: Any = None
        self._cancelled = False
        self._finish = finish
        self.done = done

    @property
    def context(self) -> Any:
        """The context of the request (`Context`)."""
        if self._context is None:
            self._context = self._make_context()
        return self._context

    def answer(self, result: Json | McpError | None) -> None:
        """Send the result of the tool, or the error; None: its handler has to answer after all. Nothing, where the call was cancelled."""
        if self._cancelled:
            return
        outcome: Json | McpError | Awaitable[Json]
        try:
            outcome = result if isinstance(result, McpError) else self._finish(self, result)
        except Exception:
            log.exception("%s failed", self.call.method)
            outcome = McpError(INTERNAL_ERROR, "Internal error")
        self.done(self.call, outcome)

    def cancel(self) -> None:
        """Withdraw the call: the client cancelled it, or has left."""
        self._cancelled = True
        if self.withdraw is not None:
            self.withdraw()


def _nothing() -> Json:
    raise RuntimeError("this call is run elsewhere")


class Forwarder(Protocol):
    """Sends calls of one tool on."""

    def ready(self, call: Call) -> bool:
        """Whether this call can be sent on now, and needs no handler."""

    def send(self, forward: Forward) -> None:
        """Send it, and give `forward` its answer some time; never before this returns."""
