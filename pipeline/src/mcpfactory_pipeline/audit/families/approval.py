"""Rules over calls that nobody is asked about."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from mcpfactory_codegen.effects import sounds_like_change
from mcpfactory_pipeline.audit.configuration import ClientFile
from mcpfactory_pipeline.audit.inventory import value_at
from mcpfactory_pipeline.audit.rule import (
    AuditedServer,
    AuditEvidence,
    AuditFault,
    AuditRule,
    Said,
    each_file,
    each_server,
)

__all__ = ["RULES", "may_change"]

_NAMED: Final = 6  # tools that a message names
_POWERS: Final = re.compile(
    r"(^|[_-])(bash|shell|terminal|command|cmd|exec|eval|evaluate|script|sql|click|type|press|drag|python|javascript|code)([_-]|$)"
)
_READS: Final = re.compile(
    r"^(get|list|read|search|find|fetch|describe|show|view|query|count|check|resolve|lookup)([_-]|$)"
)
_RULE: Final = re.compile(r"mcp__([^_]+(?:_[^_]+)*)(?:__(.+))?")


def may_change(tool: str) -> bool:
    """Whether a tool may change something, by its name: all that is known without starting its server."""
    plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", tool).lower()
    if _READS.match(plain):
        return False
    return sounds_like_change(tool) or _POWERS.search(plain) is not None


def _all(one: AuditedServer) -> Iterator[Said]:
    if "*" in one.server.approved:
        yield "every tool runs without a question, also those that a later version has"


def _writes(one: AuditedServer) -> Iterator[Said]:
    marks = {str(tool.get("name")): tool.get("annotations") or {} for tool in one.listing.tools} if one.listing else {}
    names = [name for name in one.server.approved if name != "*"]
    changing = [name for name in names if (_marked_changing(marks[name]) if name in marks else may_change(name))]
    if changing:
        more = f" and {len(changing) - _NAMED} more" if len(changing) > _NAMED else ""
        yield f"run without a question: {', '.join(changing[:_NAMED])}{more}"


def _marked_changing(annotations: object) -> bool:
    """Whether a tool that was listed may change something: it does unless it says otherwise."""
    return not (isinstance(annotations, dict) and annotations.get("readOnlyHint") is True)


def _client(file: ClientFile) -> Iterator[Said]:
    row = file.profile
    for key, values in row.unasked.items() if row else ():
        if (found := value_at(file.data, key)) in values and type(found) in {type(one) for one in values}:
            yield f"{key} = {str(found).lower() if isinstance(found, bool) else found}: {row.title if row else 'the client'} asks about nothing"


def _allowed(evidence: AuditEvidence) -> Iterator[AuditFault]:
    for file in evidence.files:
        row = file.profile
        rules = value_at(file.data, row.allowed) if row and row.allowed else None
        for rule in rules if isinstance(rules, list) else ():
            found = _RULE.fullmatch(rule) if isinstance(rule, str) else None
            if found and (not found[2] or found[2] == "*"):
                yield AuditFault(f"every tool of {found[1]} runs without a question", file=file)
            elif found and may_change(found[2]):
                yield AuditFault(f"{found[2]} of {found[1]} runs without a question", file=file)


def _clients(evidence: AuditEvidence) -> Iterator[AuditFault]:
    yield from each_file(_client)(evidence)
    yield from _allowed(evidence)


RULES: Final[tuple[AuditRule, ...]] = (
    AuditRule(
        "approval.all", 3,
        statement="A person is asked before tools of a server run.",
        reason="whatever a text talks a model into is done at once, by tools that nobody has seen yet, too",
        hint="list the tools that only read", check=each_server(_all),
    ),
    AuditRule(
        "approval.writes", 3,
        statement="No tool that changes something runs without a question.",
        reason="a text that the model reads decides what is written, sent or deleted",
        hint="take it off the list; tools that only read may stay", check=each_server(_writes),
    ),
    AuditRule(
        "approval.client", 3,
        statement="A client asks before it runs tools.",
        reason="the switch counts for every server, also for those that are added later",
        hint="switch it off, and allow single tools that only read", check=_clients,
    ),
)  # fmt: skip
