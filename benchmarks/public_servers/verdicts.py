"""What we say to each finding of severity 3 and more about a public server: why it stands, in words that its authors would accept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from benchmarks.public_servers.examination import WRONG, Examined

__all__ = ["VERDICTS", "Verdict", "stale", "undefended"]


class Verdict(NamedTuple):
    """The servers that a rule speaks of, and why it does so rightly."""

    rule: str
    servers: tuple[str, ...]
    why: str


VERDICTS: Final[tuple[Verdict, ...]] = ()


def undefended(found: Mapping[str, Examined]) -> Iterator[tuple[str, str]]:
    """Server and rule of each finding that no verdict speaks of."""
    known = _pairs()
    for name, examined in found.items():
        yield from ((name, rule) for rule in examined.rules(WRONG) if (name, rule) not in known)


def stale(found: Mapping[str, Examined]) -> Iterator[tuple[str, str]]:
    """Server and rule of each verdict about a finding that is no more."""
    there = {(name, rule) for name, examined in found.items() for rule in examined.rules(WRONG)}
    yield from sorted(_pairs() - there)


def _pairs() -> set[tuple[str, str]]:
    return {(server, one.rule) for one in VERDICTS for server in one.servers}
