"""Rules over what has changed since a person accepted it: the "rug pull". Nothing here without a lock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mcpfactory_codegen.servers.diff import diff
from mcpfactory_pipeline.audit.accepted import AcceptedServer, accept, lock_key, tools_digest
from mcpfactory_pipeline.audit.rule import AuditedServer, AuditEvidence, AuditFault, AuditRule

__all__ = ["RULES"]

_SHOWN: Final = 4  # changes that a message tells


def _known(evidence: AuditEvidence) -> Iterator[tuple[AuditedServer, AcceptedServer]]:
    for one in evidence.servers:
        if evidence.accepted is not None and (before := evidence.accepted.get(lock_key(one.server))) is not None:
            yield one, before


def _new(evidence: AuditEvidence) -> Iterator[AuditFault]:
    for one in evidence.servers:
        if evidence.accepted is not None and lock_key(one.server) not in evidence.accepted:
            yield AuditFault("nobody has accepted it", one.server)


def _command(evidence: AuditEvidence) -> Iterator[AuditFault]:
    for one, before in _known(evidence):
        now = accept(one.server, None)
        if now.command != before.command:
            yield AuditFault(f"it was started as `{before.command}` and now is as `{now.command}`", one.server)
        elif now.variables != before.variables:
            more = sorted({*now.variables} - {*before.variables})
            less = sorted({*before.variables} - {*now.variables})
            parts = [f"new: {', '.join(more)}"] if more else []
            parts += [f"gone: {', '.join(less)}"] if less else []
            yield AuditFault(f"its variables or headers changed; {'; '.join(parts)}", one.server, lesser=2)


def _version(evidence: AuditEvidence) -> Iterator[AuditFault]:
    for one, before in _known(evidence):
        if one.server.origin.version != before.version:
            yield AuditFault(
                f"version {before.version or 'any'} was accepted, and it is {one.server.origin.version or 'any'} now",
                one.server,
            )


def _tools(evidence: AuditEvidence) -> Iterator[AuditFault]:
    for one, before in _known(evidence):
        if one.listing is None or one.listing.problem or before.tools is None:
            continue
        if tools_digest(one.listing.tools) == tools_digest(before.tools):
            continue
        changes = diff({"tools": list(before.tools)}, {"tools": list(one.listing.tools)})
        told = [f"{change.tool}: {change.message}" for change in changes]
        more = f" and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
        yield AuditFault(
            f"its tools are not those that were accepted: {'; '.join(told[:_SHOWN]) or 'texts'}{more}", one.server
        )


def _not_compared(evidence: AuditEvidence) -> Iterator[AuditFault]:
    for one, before in _known(evidence):
        if before.tools is not None and (one.listing is None or one.listing.problem) and one.server.enabled:
            yield AuditFault("its tools were accepted, and were not looked at now", one.server)


def _gone(evidence: AuditEvidence) -> Iterator[AuditFault]:
    here = {lock_key(one.server) for one in evidence.servers}
    for key in evidence.accepted or () if evidence.whole else ():
        if key not in here:
            yield AuditFault(f"{key} was accepted, and is not there any more")


RULES: Final[tuple[AuditRule, ...]] = (
    AuditRule(
        "accepted.new", 3,
        statement="Every server was accepted by a person.",
        reason="somebody, or some program, has put it there since",
        hint="look at it; then --accept", check=_new,
    ),
    AuditRule(
        "accepted.command", 5,
        statement="A server is started as it was when it was accepted.",
        reason="another program runs under a name that people trust",
        hint="compare the two; then --accept", check=_command,
    ),
    AuditRule(
        "accepted.version", 3,
        statement="A server has the version that was accepted.",
        reason="a new version is new code",
        hint="read what has changed; then --accept", check=_version,
    ),
    AuditRule(
        "accepted.tools", 5,
        statement="A server offers the tools that were accepted.",
        reason="rug pull: people approve a tool, and the model gets another one",
        hint="compare the lists; then --start --accept", check=_tools,
    ),
    AuditRule(
        "accepted.not-compared", 1,
        statement="Tools that were accepted are compared.",
        reason="only a server that is started says what its tools are",
        hint="run it with --start", check=_not_compared,
    ),
    AuditRule(
        "accepted.gone", 1,
        statement="A server that was accepted is still there.",
        reason="somebody has removed or renamed it, and a new one may take its name",
        hint="--accept forgets it", check=_gone,
    ),
)  # fmt: skip
