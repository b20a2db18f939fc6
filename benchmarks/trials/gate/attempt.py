"""Attempts to bring a bad candidate into a channel, or to have forged evidence accepted, and their results."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from benchmarks.trials.gate.workspace import AttackedWorkspace

Act = Callable[[AttackedWorkspace], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attack on a workspace. `act` yields the harm that it did, and nothing if it was refused.

    An `honest` one attacks nothing, and yields each refusal of a legitimate action. A `slow` one runs stages.
    """

    name: str
    must: str
    act: Act
    slow: bool = False
    honest: bool = False

    @property
    def does(self) -> str:
        """The docstring of its function."""
        return " ".join((inspect.getdoc(self.act) or "").split())


@dataclass(frozen=True, slots=True)
class AttackResult:
    """The harm that an attempt did, and the commands that it ran, with their exit codes."""

    attempt: Attempt
    harm: tuple[str, ...]
    commands: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """The result in one word, in capitals if it is wrong."""
        words = ("refused", "ACCEPTED") if not self.attempt.honest else ("allowed", "REFUSED")
        return words[bool(self.harm)]
