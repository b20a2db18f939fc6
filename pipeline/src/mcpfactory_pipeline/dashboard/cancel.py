"""The end of a run before it is through, as a page."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CancelPage"]


@dataclass(frozen=True, slots=True)
class CancelPage:
    """The end of a run before it is through. `steps` are at work now; `problem` says why it cannot be ended here, with a `hint`."""

    workspace: str
    run: str
    steps: tuple[str, ...]
    problem: str
    hint: str
    ticket: str
