"""One attempt to bring something bad into a channel, or to have something forged believed; and what came of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from benchmarks.trials.gate.workspace import AttackedWorkspace


@dataclass(frozen=True, slots=True)
class Attempt:
    """`act` does it on a field of its own and yields what came of it that must not; nothing when it was refused.

    `honest`: nothing bad is tried, and what is yielded is what an honest person was refused. `slow`: stages run.
    """

    name: str
    must: str
    act: Callable[[AttackedWorkspace], Iterator[str]]
    slow: bool = False
    honest: bool = False

    @property
    def does(self) -> str:
        """What the attempt does: the docstring of its function."""
        return " ".join((inspect.getdoc(self.act) or "").split())


@dataclass(frozen=True, slots=True)
class AttackResult:
    """What came of an attempt: the harm, and the commands that were typed with their exit codes."""

    attempt: Attempt
    harm: tuple[str, ...]
    commands: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """In one word."""
        words = ("refused", "ACCEPTED") if not self.attempt.honest else ("allowed", "REFUSED")
        return words[bool(self.harm)]
