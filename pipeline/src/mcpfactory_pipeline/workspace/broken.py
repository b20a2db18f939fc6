"""One server's problem, and no other's: what goes wrong at one server is a value, and the work on the others goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from mcpfactory_pipeline.base.errors import PipelineError

__all__ = ["BrokenServer", "contain", "explain_broken"]

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class BrokenServer:
    """A server whose files cannot be used: why, and what to do about it."""

    name: str
    message: str
    hint: str


def contain(name: str, work: Callable[[], Result]) -> Result | BrokenServer:
    """Return what the work on one server gives, or what broke it, whatever was raised."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001 - one server's files can be broken in any way, and stop no other
        return explain_broken(name, error)


def explain_broken(name: str, error: Exception) -> BrokenServer:
    """Return an error as one server's problem. What is no `PipelineError` is named with its kind: nobody foresaw it."""
    if isinstance(error, PipelineError):
        return BrokenServer(name, str(error), error.hint)
    if isinstance(error, OSError) and error.filename is not None:
        return BrokenServer(name, f"{error.filename}: {error.strerror}", "make it readable and writable for you")
    return BrokenServer(
        name,
        f"{name} cannot be read: {type(error).__name__}: {error}",
        f"mcpfactory pipeline verify {name} judges its record; put its other files back as version control has them",
    )
