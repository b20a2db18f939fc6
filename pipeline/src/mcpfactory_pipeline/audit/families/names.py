"""Rules over names of servers that stand in each other's way."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Hashable, Iterator
from typing import Final

from mcpfactory_pipeline.audit.inventory import ConfiguredServer
from mcpfactory_pipeline.audit.rule import AuditEvidence, AuditFault, AuditRule

__all__ = ["RULES"]

_SHOWN: Final = 50  # servers whose names are alike, with which each other one is compared
_ALIKE: Final = str.maketrans({"l": "i", "1": "i", "|": "i", "0": "o", "-": "", "_": "", ".": "", " ": ""})


def _target(server: ConfiguredServer) -> Hashable:
    """Return what a server leads to: the same for two that are one. Secrets and versions of it do not count."""
    if server.url:
        return server.url.rstrip("/")
    return (server.origin.kind, server.origin.name, server.words[1:], tuple(sorted(server.environ.items())))


def _groups(evidence: AuditEvidence) -> dict[str, list[ConfiguredServer]]:
    """Return the servers of each client that it starts."""
    found: dict[str, list[ConfiguredServer]] = {}
    for one in evidence.enabled:
        found.setdefault(one.server.client or one.server.file.shown, []).append(one.server)
    return found


def _alike(
    evidence: AuditEvidence, key: Callable[[str], str]
) -> Iterator[tuple[ConfiguredServer, list[ConfiguredServer]]]:
    """Yield each server with those before it in its client whose names have the same key; of thousands of servers few have."""
    for servers in _groups(evidence).values():
        before: dict[str, list[ConfiguredServer]] = {}
        for one in servers:
            others = before.setdefault(key(one.name), [])
            yield one, others
            if len(others) < _SHOWN:
                others.append(one)


def _meet(one: ConfiguredServer, other: ConfiguredServer) -> bool:
    """Whether two servers of a client may be there at once: those of one project are not in another."""
    return not (one.scope.startswith("local ") and other.scope.startswith("local ") and one.scope != other.scope)


def _shadowed(evidence: AuditEvidence) -> Iterator[AuditFault]:
    for one, others in _alike(evidence, lambda name: name):
        for other in others:
            if _meet(one, other) and _target(one) != _target(other):
                yield AuditFault(
                    f"{other.file.shown}:{other.line} has another server of this name for scope {other.scope}: only one of them is started",
                    one,
                    lesser=None if "project" in {one.scope, other.scope} else 2,
                )


def _similar(evidence: AuditEvidence) -> Iterator[AuditFault]:
    for one, others in _alike(evidence, _looks):
        for other in others:
            if one.name != other.name and _meet(one, other):
                yield AuditFault(f"{one.name} and {other.name} are hard to tell apart, for people and models", one)


def _looks(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold().translate(_ALIKE)


def _twice(evidence: AuditEvidence) -> Iterator[AuditFault]:
    for servers in _groups(evidence).values():
        seen: dict[Hashable, ConfiguredServer] = {}
        for one in servers:
            other = seen.setdefault(_target(one), one)
            if other is not one and _meet(one, other):
                where = other.name if other.name != one.name else f"it in {other.file.shown}"
                yield AuditFault(f"it is the same as {where}: its tools are listed twice", one)


RULES: Final[tuple[AuditRule, ...]] = (
    AuditRule(
        "names.shadowed", 3,
        statement="A name stands for one server in a client.",
        reason="which of two is started depends on the folder; a repository may put its own in the place of yours",
        hint="rename one of them", check=_shadowed,
    ),
    AuditRule(
        "names.similar", 2,
        statement="Names of servers differ in more than spelling.",
        reason="a person who approves a call reads the name, and takes one for the other",
        hint="rename one of them", check=_similar,
    ),
    AuditRule(
        "names.twice", 1,
        statement="A server is configured once in a client.",
        reason="two equal lists of tools cost twice, and a model does not know which to take",
        hint="remove one of them", check=_twice,
    ),
)  # fmt: skip
