"""Rules over what started servers offer: hidden text, and tools in each other's place. Nothing here without `--start`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from mcpfactory_pipeline.audit.families.approval import may_change
from mcpfactory_pipeline.audit.rule import AuditedServer, AuditEvidence, AuditFault, AuditRule, Said, each_server
from mcpfactory_pipeline.base.text import HIDDEN, strings_in

__all__ = ["RULES"]

_NAMED: Final = 5
_TELLING: Final = re.compile(
    r"[A-Za-z]+[_-][A-Za-z0-9_-]+|[a-z]+[A-Z]\w+"
)  # a name of several words is no word of a language


def _failed(evidence: AuditEvidence) -> Iterator[AuditFault]:
    for one in evidence.servers:
        if one.listing is not None and one.listing.problem:
            yield AuditFault(one.listing.problem, one.server, hint=one.listing.hint)


def _texts(one: AuditedServer) -> Iterator[tuple[str, str]]:
    """Yield (where, text) of everything that a model is shown before any call."""
    if one.listing is None:
        return
    yield "its instructions", one.listing.instructions
    for tool in one.listing.tools:
        for text in strings_in(tool):
            yield f"tool {tool.get('name')}", text


def _hidden(one: AuditedServer) -> Iterator[Said]:
    for where in dict.fromkeys(where for where, text in _texts(one) if HIDDEN.search(text)):
        yield f"{where} has characters that a person does not see and a model reads"


def _shadow(evidence: AuditEvidence) -> Iterator[AuditFault]:
    first: dict[tuple[str, str], AuditedServer] = {}
    for one in evidence.enabled:
        same: dict[str, list[str]] = {}
        for name in _names(one):
            other = first.setdefault((one.server.client or one.server.file.shown, name), one)
            if other is not one and other.server.name != one.server.name:
                same.setdefault(other.server.name, []).append(name)
        for owner, names in same.items():
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            yield AuditFault(f"{owner} has tools of the same names: {', '.join(names[:_NAMED])}{more}", one.server)


def _names(one: AuditedServer) -> list[str]:
    return [str(tool.get("name")) for tool in one.listing.tools] if one.listing else []


def _others(evidence: AuditEvidence) -> Iterator[AuditFault]:
    """Texts of a server that name tools of another one: how a description changes what a model does with tools that are not its own."""
    for one in evidence.enabled:
        if one.listing is None:
            continue
        own = set(_names(one))
        foreign = {
            name: other.server.name
            for other in evidence.enabled
            if other is not one and other.server.client == one.server.client
            for name in _names(other)
            if name not in own and _TELLING.fullmatch(name)
        }
        if not foreign:
            continue
        pattern = re.compile(
            rf"(?<![\w-])({'|'.join(map(re.escape, sorted(foreign, key=len, reverse=True)))})(?![\w-])"
        )
        told = set()
        for where, text in _texts(one):
            for name in pattern.findall(text):
                if (where, name) not in told:
                    told.add((where, name))
                    yield AuditFault(f"{where} speaks of {name}, a tool of {foreign[name]}", one.server)


def _unmarked(one: AuditedServer) -> Iterator[Said]:
    names = [
        str(tool.get("name"))
        for tool in (one.listing.tools if one.listing else ())
        if not tool.get("annotations") and may_change(str(tool.get("name")))
    ]
    if names:
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        yield f"nothing says what they do to the world: {', '.join(names[:_NAMED])}{more}"


def _leaks(one: AuditedServer) -> Iterator[Said]:
    if one.listing is not None and one.listing.leaked:
        yield f"what it answers holds the value of {', '.join(one.listing.leaked)}"


RULES: Final[tuple[AuditRule, ...]] = (
    AuditRule(
        "tools.start-failed", 2,
        statement="A server starts and lists its tools.",
        reason="what it offers could not be looked at",
        hint="start it by hand, and read what it says", check=_failed,
    ),
    AuditRule(
        "tools.hidden-text", 5,
        statement="Nothing that a model is shown has characters that a person does not see.",
        reason="tool poisoning: the reviewer cannot see it, and the model obeys",
        hint="do not use the server until its author explains it", check=each_server(_hidden),
    ),
    AuditRule(
        "tools.shadow", 3,
        statement="No two servers of a client have tools of the same name.",
        reason="a call that is meant for one may reach the other",
        hint="switch one of the tools off, or rename the server where the client puts its name in front", check=_shadow,
    ),
    AuditRule(
        "tools.other-server", 3,
        statement="No server speaks of tools of another one.",
        reason="tool poisoning across servers: its text changes what the model does with tools that it does not have",
        hint="read the text; keep such servers out of clients that have the other one", check=_others,
    ),
    AuditRule(
        "tools.unmarked", 1,
        statement="A tool that changes something has annotations.",
        reason="without them clients cannot tell harmless calls from others",
        hint="ask its author for readOnlyHint and destructiveHint", check=each_server(_unmarked),
    ),
    AuditRule(
        "tools.leak", 5,
        statement="No secret of a variable, an argument, a header or an address comes back in what a server lists.",
        reason="it stands in every conversation then",
        hint="do not use the server", check=each_server(_leaks), always=True,
    ),
)  # fmt: skip
