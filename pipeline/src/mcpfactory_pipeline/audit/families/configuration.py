"""Rules over the files themselves: whether they can be read, who may change them, and whether they say what they seem to say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mcpfactory_pipeline.audit.configuration import ClientFile
from mcpfactory_pipeline.audit.inventory import LONGEST_ENTRY, LONGEST_TEXT
from mcpfactory_pipeline.audit.rule import (
    AuditedServer,
    AuditEvidence,
    AuditFault,
    AuditRule,
    Said,
    each_file,
    each_server,
)
from mcpfactory_pipeline.base.text import UNSEEN

__all__ = ["RULES"]

_SHOWN: Final = 20  # lines of a name that stands there more often


def _unreadable(evidence: AuditEvidence) -> Iterator[AuditFault]:
    yield from each_file(_closed)(evidence)
    for section in evidence.sections:
        for name, length in section.cut:
            yield AuditFault(
                f"its texts have {length:,} characters, of which {LONGEST_TEXT:,} of each and {LONGEST_ENTRY:,} of all were looked at",
                file=section.file,
                name=name,
                line=section.line(name),
            )


def _closed(file: ClientFile) -> Iterator[Said]:
    if file.problem:
        yield f"it could not be read: {file.problem}"


def _writable(file: ClientFile) -> Iterator[Said]:
    if file.writable and not file.problem:
        yield f"others than its owner may change {file.writable}"


def _repeated(evidence: AuditEvidence) -> Iterator[AuditFault]:
    for section in evidence.sections:
        places: dict[str, list[int]] = {}
        for name, line in section.lines:
            places.setdefault(name, []).append(line)
        for name in sorted(name for name, lines in places.items() if len(lines) > 1):
            lines = places[name]
            more = f" and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
            yield AuditFault(
                f"{name!r} is there {len(lines)} times, in lines {', '.join(map(str, lines[:_SHOWN]))}{more}: the last one counts",
                file=section.file,
                name=name,
                line=section.line(name),
            )


def _odd(evidence: AuditEvidence) -> Iterator[AuditFault]:
    for one in evidence.odd:
        yield AuditFault(
            "it names neither a command nor a URL",
            file=one.section.file,
            name=one.name,
            line=one.section.line(one.name),
        )


def _hidden(one: AuditedServer) -> Iterator[Said]:
    server = one.server
    texts = {
        "its name": [server.name], "its command": server.words, "its URL": [server.url],
        "the name of a variable": server.environ, "the name of a header": server.headers, "the name of an approved tool": server.approved,
    }  # fmt: skip
    for where, values in texts.items():
        found = sorted({char for value in values for text in UNSEEN.findall(value) for char in text})
        if found:
            yield f"{where} has characters that nobody sees: {', '.join(f'U+{ord(char):04X}' for char in found[:5])}"


RULES: Final[tuple[AuditRule, ...]] = (
    AuditRule(
        "configuration.unreadable", 3,
        statement="Every configuration can be read.",
        reason="what cannot be read was not audited, and the client may read it all the same",
        hint="mend the file, or make it readable for yourself",
        check=_unreadable,
    ),
    AuditRule(
        "configuration.writable", 5,
        statement="Nobody but its owner may change a configuration.",
        reason="who writes it has any program started as its owner",
        hint="chmod go-w on the file and on its folder",
        check=each_file(_writable),
    ),
    AuditRule(
        "configuration.repeated-name", 3,
        statement="A name stands for one server in a file.",
        reason="parsers take the last of two equal names, and a reader sees the first",
        hint="remove one of them, or rename it",
        check=_repeated,
    ),
    AuditRule(
        "configuration.entry", 2,
        statement="Every entry names a command or a URL.",
        reason="the client shows an error, or takes the entry for something else",
        hint="write command and args, or url",
        check=_odd,
    ),
    AuditRule(
        "configuration.hidden-characters", 5,
        statement="Nothing in an entry has control characters, or characters that a person does not see.",
        reason="the entry is not what a reviewer reads, and names act on the terminal that shows them",
        hint="type the entry anew, and look where it came from",
        check=each_server(_hidden), always=True,
    ),
)  # fmt: skip
