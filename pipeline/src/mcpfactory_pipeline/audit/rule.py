"""What a rule of the audit is, what it looks at, and what it may answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from mcpfactory_pipeline.audit.accepted import AcceptedServer, OfferedTools
from mcpfactory_pipeline.audit.configuration import ClientFile
from mcpfactory_pipeline.audit.inventory import ConfiguredServer, OddEntry, Section
from mcpfactory_pipeline.audit.machine import NOTHING_KNOWN, MachineFacts
from mcpfactory_pipeline.checks.rule import Severity

__all__ = ["AuditEvidence", "AuditFault", "AuditRule", "AuditedServer", "each_file", "each_server", "weaker"]

OFF: Final[Severity] = 1  # what a server weighs that its client does not start


@dataclass(frozen=True, slots=True)
class AuditedServer:
    """A server with what was found out about it: of the file system, and what it said when it was started (None: it was not)."""

    server: ConfiguredServer
    facts: MachineFacts = NOTHING_KNOWN
    listing: OfferedTools | None = None


@dataclass(frozen=True, slots=True)
class AuditEvidence:
    """All that an audit knows. `accepted` is what a person accepted before, by the keys of servers; None without a lock."""

    files: tuple[ClientFile, ...] = ()
    sections: tuple[Section, ...] = ()
    servers: tuple[AuditedServer, ...] = ()
    odd: tuple[OddEntry, ...] = ()
    accepted: dict[str, AcceptedServer] | None = None
    whole: bool = True

    @property
    def enabled(self) -> list[AuditedServer]:
        """The servers that clients start."""
        return [one for one in self.servers if one.server.enabled]


@dataclass(frozen=True, slots=True)
class AuditFault:
    """What a rule found: about a server, or an entry or a file. `lesser` is its severity where that is not the rule's."""

    message: str
    server: ConfiguredServer | None = None
    file: ClientFile | None = None
    name: str = ""
    line: int = 1
    lesser: Severity | None = None
    hint: str = ""


@dataclass(frozen=True, slots=True)
class AuditRule:
    """One thing that should not be. `always`: also of servers that are switched off, with its whole severity."""

    id: str
    severity: Severity
    statement: str
    reason: str
    hint: str
    check: Callable[[AuditEvidence], Iterable[AuditFault]] = field(repr=False)
    always: bool = False

    @property
    def family(self) -> str:
        """What it is about: the first word of its id."""
        return self.id.partition(".")[0]


Said = str | tuple[str, Severity]


def each_server(look: Callable[[AuditedServer], Iterable[Said]]) -> Callable[[AuditEvidence], Iterator[AuditFault]]:
    """Return the check that looks at each server alone; it gives messages, with a severity where that is not the rule's."""

    def check(evidence: AuditEvidence) -> Iterator[AuditFault]:
        for one in evidence.servers:
            for said in look(one):
                message, lesser = (said, None) if isinstance(said, str) else said
                yield AuditFault(message, one.server, lesser=lesser)

    return check


def each_file(look: Callable[[ClientFile], Iterable[Said]]) -> Callable[[AuditEvidence], Iterator[AuditFault]]:
    """Return the check that looks at each file alone."""

    def check(evidence: AuditEvidence) -> Iterator[AuditFault]:
        for file in evidence.files:
            for said in look(file):
                message, lesser = (said, None) if isinstance(said, str) else said
                yield AuditFault(message, file=file, lesser=lesser)

    return check


def weaker(rule: AuditRule, fault: AuditFault) -> Severity:
    """Return the severity of a fault: that of a server which is switched off is the least, unless the rule says otherwise."""
    severity = fault.lesser or rule.severity
    return OFF if fault.server is not None and not fault.server.enabled and not rule.always else severity
