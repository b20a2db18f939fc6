"""What an audit found: the files that were read, the servers in them, and what a person should look at. No secret is in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any, Final

from mcpfactory_codegen.sources.secrets import redacted
from mcpfactory_pipeline.audit.configuration import ClientFile
from mcpfactory_pipeline.audit.inventory import ConfiguredServer
from mcpfactory_pipeline.audit.mentions import shown_url, without_tokens
from mcpfactory_pipeline.audit.rule import AuditedServer, AuditEvidence, AuditFault, AuditRule, weaker
from mcpfactory_pipeline.base.records import JsonRecord
from mcpfactory_pipeline.checks.rule import Severity

__all__ = ["DOCS", "AuditFinding", "AuditReport", "FileRow", "InventoryRow", "judge"]

DOCS: Final = "docs/reference/audit-rules.md"
_SHORTEST: Final = 6  # characters of a secret that is masked everywhere; shorter ones would mask half of every report
_PATH: Final = re.compile(r"(~|\.{1,2})?[/\\].*|[A-Za-z]:[\\/].*|~")
# What is no folder below the root, but an option of Windows with its value: `/pSECRET`.
_GLUED: Final = re.compile(r"(/[A-Za-z])(?=[^/]*\d)(?=[^/]*[A-Z])(?=[^/]*[a-z])[^/\\.]{7,}")
_KINDS: Final[Mapping[str, str]] = {
    "npm": "npm package", "pypi": "PyPI package", "go": "Go package", "nuget": "NuGet package", "image": "image", "git": "repository",
    "url": "code from a URL", "script": "script", "module": "module", "code": "code in the file", "local": "local project",
    "program": "program", "none": "command",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FileRow(JsonRecord):
    """A file that was there: whose it is, how many servers it has, and why it could not be read."""

    client: str
    scope: str
    file: str
    servers: int
    problem: str = ""
    link: str = ""


@dataclass(frozen=True, slots=True)
class InventoryRow(JsonRecord):
    """One server of the inventory: where it stands, what is started, and what it reaches. Values of variables are not in it.

    `pin` says how sure the version is; `folders` are paths that it is given, `hosts` the machines that its address names, `tools` are
    None when it was not started.
    """

    client: str
    scope: str
    file: str
    line: int
    name: str
    enabled: bool
    starts: str
    runner: str
    target: str
    version: str
    pin: str
    hosts: tuple[str, ...]
    folders: tuple[str, ...]
    variables: tuple[str, ...]
    headers: tuple[str, ...]
    secrets: tuple[Mapping[str, Any], ...]
    approved: tuple[str, ...]
    tools: tuple[str, ...] | None = None
    server_version: str = ""

    @property
    def reach(self) -> str:
        """What it reaches, in words."""
        parts = [*self.hosts, *self.folders, *self.variables, *(f"header {name}" for name in self.headers)]
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class AuditFinding(JsonRecord):
    """One thing to look at: the rule, what is wrong and where, why that matters, and what to do."""

    rule: str
    severity: Severity
    message: str
    client: str
    scope: str
    file: str
    line: int
    server: str
    reason: str
    hint: str
    docs: str


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What `audit` returns. `looked` are the clients that were looked at; `started`: servers were started."""

    looked: tuple[str, ...]
    files: tuple[FileRow, ...]
    servers: tuple[InventoryRow, ...]
    findings: tuple[AuditFinding, ...]
    started: bool = False
    rules: tuple[AuditRule, ...] = field(default=(), repr=False)

    def at_least(self, severity: int) -> tuple[AuditFinding, ...]:
        """Return the findings of that severity and worse ones."""
        return tuple(one for one in self.findings if one.severity >= severity)

    def to_json(self) -> dict[str, Any]:
        """Plain data: no clock and no value of a secret."""
        return {
            "audit": 1,
            "clients": list(self.looked),
            "started": self.started,
            "files": [asdict(one) for one in self.files],
            "servers": [{**asdict(one), "reach": one.reach} for one in self.servers],
            "findings": [asdict(one) for one in self.findings],
        }


def judge(
    evidence: AuditEvidence, rules: Iterable[AuditRule], looked: Sequence[str] = (), *, started: bool = False
) -> AuditReport:
    """Apply the rules to what is known. Pure; what looks like a secret is masked in every text."""
    table = tuple(rules)
    hide = _mask(evidence)
    found = [_finding(rule, fault, hide) for rule in table for fault in rule.check(evidence)]
    found.sort(key=lambda one: (-one.severity, one.file, one.line, one.server, one.rule))
    return AuditReport(
        tuple(looked),
        tuple(_file_row(file, evidence, hide) for file in evidence.files),
        tuple(_server_row(one, hide) for one in evidence.servers),
        tuple(found),
        started,
        table,
    )


def _mask(evidence: AuditEvidence) -> Callable[[str], str]:
    """Return what takes the known secrets, and what has the form of one, out of a text."""
    values = {
        secret.value for one in evidence.servers for secret in one.server.secrets if len(secret.value) >= _SHORTEST
    }
    known: dict[str, list[str]] = {}  # by how they begin: a pattern of thousands would be tried at every character
    for value in sorted(values, key=len, reverse=True):
        known.setdefault(value[:_SHORTEST], []).append(value)

    @lru_cache(maxsize=4096)  # thousands of servers have the same programs and names of variables
    def hide(text: str) -> str:
        return redacted(without_tokens(_without(known, text)), lambda _: "…", pairs=False)

    return hide


def _without(known: Mapping[str, Sequence[str]], text: str) -> str:
    """Return a text with `…` for each of the values, the longest first; they are given by their beginnings."""
    kept, at = [], 0
    begun = 0
    while at <= len(text) - _SHORTEST:
        found = next((one for one in known.get(text[at : at + _SHORTEST], ()) if text.startswith(one, at)), None)
        if found is None:
            at += 1
            continue
        kept += [text[begun:at], "…"]
        begun = at = at + len(found)
    return "".join([*kept, text[begun:]])


def _finding(rule: AuditRule, fault: AuditFault, hide: Callable[[str], str]) -> AuditFinding:
    server = fault.server
    file = server.file if server is not None else fault.file
    return AuditFinding(
        rule.id,
        weaker(rule, fault),
        hide(fault.message) + ("" if server is None or server.enabled or rule.always else " (it is switched off)"),
        file.client if file else "",
        server.scope if server else file.scope if file else "",
        file.shown if file else "",
        server.line if server else fault.line,
        hide(server.name if server else fault.name),
        rule.reason,
        fault.hint or rule.hint,
        f"{DOCS}#{rule.id.replace('.', '')}",
    )


def _file_row(file: ClientFile, evidence: AuditEvidence, hide: Callable[[str], str]) -> FileRow:
    count = sum(one.server.file is file for one in evidence.servers)
    return FileRow(file.client, file.scope, file.shown, count, hide(file.problem), file.link)


def _server_row(one: AuditedServer, hide: Callable[[str], str]) -> InventoryRow:
    server, origin = one.server, one.server.origin
    address = server.address
    hosts = [hide(shown_url(address))] if address else []
    folders = [hide(path) for path in _folders(server)]
    return InventoryRow(
        client=server.client,
        scope=server.scope,
        file=server.file.shown,
        line=server.line,
        name=hide(server.name),
        enabled=server.enabled,
        starts="URL" if server.url else _KINDS[origin.kind],
        runner=hide(origin.runner),
        target=hide(shown_url(server.url) if server.url else _target(server)),
        version=hide(origin.version),
        pin=origin.pin,
        hosts=tuple(hosts if not server.url else ()),
        folders=tuple(folders),
        variables=tuple(hide(name) for name in dict.fromkeys((*server.environ, *server.passed))),
        headers=tuple(hide(name) for name in server.headers),
        secrets=tuple(
            {"place": secret.place, "name": hide(secret.name), "kind": secret.kind, "length": secret.length}
            for secret in server.secrets
        ),
        approved=tuple(hide(name) for name in server.approved),
        tools=None
        if one.listing is None or one.listing.problem
        else tuple(hide(str(tool.get("name"))) for tool in one.listing.tools),
        server_version=hide(one.listing.version) if one.listing else "",
    )


def _target(server: ConfiguredServer) -> str:
    name = server.origin.name or (server.words[0] if server.words else "")
    return shown_url(name) if "://" in name else name


def _folders(server: ConfiguredServer) -> list[str]:
    run = server.origin.run
    if run is not None:
        return [mount.source for mount in run.mounts]
    words = [word.partition("=")[2] if word.startswith("-") else word for word in server.words[1:]]
    found = [
        word for word in words if _PATH.fullmatch(word) and word not in server.origin.scripts and "://" not in word
    ]
    return [f"{glued[1]}…" if (glued := _GLUED.fullmatch(word)) else word for word in found]
