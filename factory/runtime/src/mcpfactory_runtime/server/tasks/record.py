"""What a task is, and how it may change. Pure: no clock, no store, no loop.

The transitions are those of both specifications (basic/utilities/tasks, Task Status Lifecycle; ext-tasks, Task Status):
working ⇄ input_required, either → completed, failed or cancelled, and nothing leaves those three.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

__all__ = ["TERMINAL", "Change", "Status", "Task"]

Json = dict[str, Any]
Status = Literal["working", "input_required", "completed", "failed", "cancelled"]

TERMINAL: Final[frozenset[str]] = frozenset({"completed", "failed", "cancelled"})


@dataclass(frozen=True, slots=True)
class Task:
    """One tool call that is carried out in the background.

    Attributes:
        id: unguessable; the only name of the task on the wire.
        owner: the principal that created it; only the same one may see it. "" without authorization.
        tool: the tool's name.
        created: seconds since the epoch, by the store's clock; likewise `updated`.
        ttl: milliseconds after `created` at which the task is forgotten; None never.
        status: where it stands. Failures of the tool itself are `completed` with `isError` in the result.
        message: what people may read about the status.
        requests: questions to the client that are not answered: key → request object.
        answers: answers that the handler may still want: key → `{"result": …}` or `{"error": …}`.
        result: the tool's result in the newest form, when completed.
        error: the JSON-RPC error, when failed.
        runner: the process that works on it, as the store names processes.
        version: grows with every change.
    """

    id: str
    owner: str
    tool: str
    created: float
    updated: float
    ttl: int | None
    status: Status = "working"
    message: str | None = None
    requests: Json = field(default_factory=dict)
    answers: Json = field(default_factory=dict)
    result: Json | None = None
    error: Json | None = None
    runner: str = ""
    version: int = 0

    @property
    def terminal(self) -> bool:
        """Whether nothing can happen any more."""
        return self.status in TERMINAL

    @property
    def expires(self) -> float | None:
        """When the task is forgotten, in seconds since the epoch; None never."""
        return None if self.ttl is None else self.created + self.ttl / 1000

    # -- transitions: the task afterwards, or None where it has ended already ---------------------------------------

    def asked(self, requests: Json) -> Task | None:
        """Wait for the client's answers to these requests as well."""
        if self.terminal:
            return None
        return replace(self, status="input_required", requests={**self.requests, **requests})

    def answered(self, answers: Json) -> Task | None:
        """Take answers; those that nobody waits for are ignored (ext-tasks, Task Update Requests)."""
        wanted = {key: answer for key, answer in answers.items() if key in self.requests}
        if self.terminal or not wanted:
            return None
        left = {key: request for key, request in self.requests.items() if key not in wanted}
        status: Status = "input_required" if left else "working"
        return replace(self, status=status, requests=left, answers={**self.answers, **wanted})

    def with_message(self, message: str) -> Task | None:
        """Say how the work goes."""
        return None if self.terminal or self.message == message else replace(self, message=message)

    def completed(self, result: Json) -> Task | None:
        """End with the tool's result."""
        return self._ended("completed", result=result)

    def failed(self, error: Json) -> Task | None:
        """End with a JSON-RPC error."""
        return self._ended("failed", error=error, message=error["message"])

    def cancelled(self, message: str) -> Task | None:
        """End without a result."""
        return self._ended("cancelled", message=message)

    def _ended(self, status: Status, **changes: Any) -> Task | None:
        # What was asked and answered is of no use any more, and answers may be confidential.
        return None if self.terminal else replace(self, status=status, requests={}, answers={}, **changes)


Change = Callable[[Task], Task | None]
"""A transition with its arguments: the task before → the task afterwards, or None to leave it as it is."""
