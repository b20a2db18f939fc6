"""A row of the table of features: what it is, what we have with the place that shows it, and what the peers have with a probe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Level = Literal["yes", "partly", "no"]


@dataclass(frozen=True, slots=True)
class FeaturePeer:
    """A framework that the table speaks of: its name, its import package, and the distribution that is installed."""

    name: str
    package: str
    requirement: str

    @property
    def distribution(self) -> str:
        """Its name without the version."""
        return self.requirement.partition("==")[0].partition("[")[0]


PEERS: Final = (
    FeaturePeer("FastMCP", "fastmcp", "fastmcp==4.2.3"),
    FeaturePeer("Python SDK", "mcp", "mcp[cli]==2.3.0"),
)


@dataclass(frozen=True, slots=True)
class Ours:
    """What we have.

    Attributes:
        level: all of it, some, none.
        words: what is missing, or how it is called here.
        docs: page and heading below docs/; "" where we have nothing.
        shown: what the documentation writes there; "" likewise.
        used: what the test writes; the same unless a command is called by its words.
        test: the test, as pytest names it without its parameters.
    """

    level: Level
    words: str = ""
    docs: str = ""
    shown: str = ""
    used: str = ""
    test: str = ""


@dataclass(frozen=True, slots=True)
class PeerClaim:
    """What a peer has, and what of it can be looked for in its installed code (`benchmarks/features/probe.py`)."""

    level: Level
    probe: str
    words: str = ""


@dataclass(frozen=True, slots=True)
class Feature:
    """One row."""

    key: str
    what: str
    ours: Ours
    peers: tuple[PeerClaim, PeerClaim]


def ours(docs: str, shown: str, test: str, *, used: str = "", partly: str = "") -> Ours:
    """Return what we have; `partly` says what is missing."""
    return Ours("partly" if partly else "yes", partly, docs, shown, used or shown, f"tests/{test}")


def yes(probe: str, words: str = "") -> PeerClaim:
    """Return that a peer has it."""
    return PeerClaim("yes", probe, words)


def partly(probe: str, words: str) -> PeerClaim:
    """Return that a peer has some of it."""
    return PeerClaim("partly", probe, words)


def no(probe: str, words: str = "") -> PeerClaim:
    """Return that a peer has nothing of it that its names show."""
    return PeerClaim("no", probe, words)
