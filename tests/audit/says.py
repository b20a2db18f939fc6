"""What the rules say of a configuration, and nothing of this machine: no file system is asked."""

from __future__ import annotations

from pathlib import Path

from mcpfactory_pipeline.audit.accepted import AcceptedServer, OfferedTools
from mcpfactory_pipeline.audit.configuration import ClientFile
from mcpfactory_pipeline.audit.inventory import ConfiguredServer, OddEntry, configured_servers, sections
from mcpfactory_pipeline.audit.machine import NOTHING_KNOWN, MachineFacts
from mcpfactory_pipeline.audit.report import AuditReport, judge
from mcpfactory_pipeline.audit.rule import AuditedServer, AuditEvidence
from mcpfactory_pipeline.audit.rules import RULES
from mcpfactory_pipeline.clients import edits
from mcpfactory_pipeline.clients.table import ConfigFile, find_client

Texts = list[tuple[str, str, str]]


def read(client: str, scope: str, text: str, *, settings: bool = False, **facts: object) -> ClientFile:
    """A file of a client with that text."""
    row = find_client(client)
    assert row is not None
    place = row.project if scope == "project" and row.project else row.user
    config = ConfigFile((), "json") if settings else place
    path = Path("/home/me") / (f"{client}.settings" if settings else f"{client}.{scope}")
    return ClientFile(
        client,
        scope,
        path,
        f"~/{path.name}",
        config.format,
        row.forms,
        settings,
        text,
        edits.read(text, config),
        **facts,
    )  # type: ignore[arg-type]


def evidence_of(
    *files: ClientFile,
    facts: MachineFacts = NOTHING_KNOWN,
    listings: dict[str, OfferedTools] | None = None,
    accepted: dict[str, AcceptedServer] | None = None,
) -> AuditEvidence:
    """What is known of files, with the same facts for each server, and what the servers said by their names."""
    found = [one for file in files for one in sections(file)]
    entries = [one for section in found for one in configured_servers(section)]
    servers = [one for one in entries if isinstance(one, ConfiguredServer)]
    odd = tuple(one for one in entries if isinstance(one, OddEntry))
    heard = listings or {}
    return AuditEvidence(
        files, tuple(found), tuple(AuditedServer(one, facts, heard.get(one.name)) for one in servers), odd, accepted
    )


def report_of(*files: ClientFile, **more: object) -> AuditReport:
    return judge(evidence_of(*files, **more), RULES)  # type: ignore[arg-type]


def said(report: AuditReport) -> dict[str, set[str]]:
    """Server → the rules that it breaks; findings about files stand under ""."""
    found: dict[str, set[str]] = {}
    for one in report.findings:
        found.setdefault(one.server, set()).add(one.rule)
    return found
