"""An audit from the files of clients to the report. Nothing is started unless the request says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mcpfactory_pipeline.audit.accepted import AcceptedServer, OfferedTools, accept, lock_key
from mcpfactory_pipeline.audit.configuration import ClientFile, find_files, named_file
from mcpfactory_pipeline.audit.inventory import ConfiguredServer, OddEntry, configured_servers, sections
from mcpfactory_pipeline.audit.machine import FilesLookedAt, examine_files
from mcpfactory_pipeline.audit.report import AuditReport, judge
from mcpfactory_pipeline.audit.rule import AuditedServer, AuditEvidence
from mcpfactory_pipeline.audit.rules import RULES
from mcpfactory_pipeline.audit.start import StartRequest, start_servers
from mcpfactory_pipeline.base.text import pluralize
from mcpfactory_pipeline.clients.files import Home
from mcpfactory_pipeline.clients.table import CLIENTS, ClientProfile

__all__ = ["AuditRequest", "audit", "gather", "now_accepted"]


@dataclass(frozen=True, slots=True)
class AuditRequest:
    """What is audited.

    Attributes:
        clients: whose files are read; none means all.
        configs: files that a person named, in place of those of the clients.
        project: the folder whose files are read besides the user's; None: the user's only.
        user: whether the user's files are read.
        start: how servers are started; None: nothing is.
        accepted: what a person accepted before, by the keys of servers; None without a lock.
    """

    clients: Sequence[ClientProfile] = ()
    configs: Sequence[Path] = ()
    project: Path | None = None
    user: bool = True
    start: StartRequest | None = None
    accepted: Mapping[str, AcceptedServer] | None = field(default=None, repr=False)


def audit(
    request: AuditRequest, home: Home, notify: Callable[[str], None] = lambda _step: None
) -> tuple[AuditReport, AuditEvidence]:
    """Return the report, and what it was made of. `notify` is called with what begins now.

    Raises:
        NotFoundError: a file that was named is not there.
    """
    notify("reading the files of clients")
    evidence = gather(_files(request, home), home, request, notify)
    if request.start is not None:
        notify(f"starting {pluralize(len(evidence.enabled), 'server')}")
        evidence = asyncio.run(_started(evidence, request.start, home))
    notify(f"judging {pluralize(len(evidence.servers), 'server')}")
    looked = [row.id for row in request.clients or (() if request.configs else CLIENTS)]
    return judge(evidence, RULES, looked, started=request.start is not None), evidence


def gather(
    files: Sequence[ClientFile], home: Home, request: AuditRequest, notify: Callable[[str], None] = lambda _step: None
) -> AuditEvidence:
    """Return what files say, and what the file system says of what they name. `notify` is called with what begins now."""
    found = [one for file in files for one in sections(file)]
    notify(f"looking at {pluralize(sum(len(one.entries) for one in found), 'server')}")
    entries = [entry for section in found for entry in configured_servers(section)]
    looked = FilesLookedAt()
    return AuditEvidence(
        tuple(files),
        tuple(found),
        tuple(
            AuditedServer(one, examine_files(one, home.environ, home.home, looked))
            for one in entries
            if isinstance(one, ConfiguredServer)
        ),
        tuple(one for one in entries if isinstance(one, OddEntry)),
        dict(request.accepted) if request.accepted is not None else None,
        request.user and not (request.clients or request.configs),
    )


def now_accepted(evidence: AuditEvidence) -> dict[str, AcceptedServer]:
    """Return what a lock holds once a person accepts what is there.

    Tools that were not listed now stay as they were accepted while the command is the same. Where only some files were looked at, the
    servers of the others stay.
    """
    before = evidence.accepted or {}
    kept = {} if evidence.whole else dict(before)
    for one in evidence.servers:
        new, old = accept(one.server, one.listing), before.get(lock_key(one.server))
        if new.tools is None and old is not None and (old.command, old.version) == (new.command, new.version):
            new = AcceptedServer(new.command, new.version, new.variables, old.tools)
        kept[lock_key(one.server)] = new
    return kept


def _files(request: AuditRequest, home: Home) -> list[ClientFile]:
    if not request.configs:
        found = find_files(request.clients or CLIENTS, home, request.project)
        return [file for file in found if request.user or file.scope == "project"]
    client = request.clients[0] if len(request.clients) == 1 else None
    return [named_file(file, client, home) for file in request.configs]


async def _started(evidence: AuditEvidence, request: StartRequest, home: Home) -> AuditEvidence:
    wanted = [one for one in evidence.servers if one.server.enabled]
    listings = await start_servers([one.server for one in wanted], request, home.environ)
    heard: dict[int, OfferedTools] = {id(one): listing for one, listing in zip(wanted, listings, strict=True)}
    servers = tuple(AuditedServer(one.server, one.facts, heard.get(id(one))) for one in evidence.servers)
    return AuditEvidence(evidence.files, evidence.sections, servers, evidence.odd, evidence.accepted, evidence.whole)
