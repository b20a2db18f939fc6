"""Rules over secrets in clear text. A value is never shown: its name, its kind and its length are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from mcpfactory_pipeline.audit.mentions import Place, in_texts
from mcpfactory_pipeline.audit.rule import AuditedServer, AuditEvidence, AuditFault, AuditRule, Said, each_server

__all__ = ["RULES"]


def _at(place: Place) -> Callable[[AuditedServer], Iterator[Said]]:
    def look(one: AuditedServer) -> Iterator[Said]:
        found = [secret.words for secret in one.server.secrets if secret.place == place]
        if found:
            yield f"in clear text: {', '.join(found)}"

    return look


def _shared(one: AuditedServer) -> Iterator[Said]:
    if one.server.secrets and one.server.scope == "project":
        names = ", ".join(dict.fromkeys(secret.name for secret in one.server.secrets))
        yield f"{one.server.file.path.name} belongs to the project, and holds {names}"


def _readable(evidence: AuditEvidence) -> Iterator[AuditFault]:
    for file in evidence.files:
        names = [
            f"{secret.name} of {one.server.name}"
            for one in evidence.servers
            if one.server.file is file
            for secret in one.server.secrets
        ]
        if names and file.readable and file.scope != "project":
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            yield AuditFault(f"others than its owner may read it, and {', '.join(names[:3])}{more}", file=file)


def _elsewhere(evidence: AuditEvidence) -> Iterator[AuditFault]:
    for file in evidence.files:
        known = {secret.value for one in evidence.servers if one.server.file is file for secret in one.server.secrets}
        found = {one.value: one.words for one in in_texts(file.data) if one.value not in known}
        if found:
            words = list(found.values())
            more = f" and {len(words) - 5} more" if len(words) > 5 else ""
            yield AuditFault(f"beside its servers: {', '.join(words[:5])}{more}", file=file)


_HINT: Final = "refer to a variable of the environment, where the client can (see the reference of clients)"

RULES: Final[tuple[AuditRule, ...]] = (
    AuditRule(
        "secrets.environment", 3,
        statement="No value of a variable is a secret in clear text.",
        reason="configurations are copied, synchronised and shown; whoever has the file has the secret",
        hint=_HINT, check=each_server(_at("environment")), always=True,
    ),
    AuditRule(
        "secrets.headers", 3,
        statement="No value of a header is a secret in clear text.",
        reason="as for variables; and the header goes to whoever the URL belongs to later",
        hint=_HINT, check=each_server(_at("headers")), always=True,
    ),
    AuditRule(
        "secrets.arguments", 3,
        statement="No argument of a command is a secret.",
        reason="every program of the machine may read the command lines of the others",
        hint="hand it over as a variable: most servers read one", check=each_server(_at("arguments")), always=True,
    ),
    AuditRule(
        "secrets.url", 3,
        statement="No URL has a secret in it.",
        reason="addresses are written into logs and histories, of proxies, too",
        hint="send it as a header, or log in by OAuth; give out a new address when this one was shared", check=each_server(_at("url")), always=True,
    ),
    AuditRule(
        "secrets.settings", 3,
        statement="No token stands elsewhere in a client's files.",
        reason="hooks and settings are read and copied as configurations are",
        hint="take it out, and have a new one made where others had the file", check=_elsewhere, always=True,
    ),
    AuditRule(
        "secrets.shared", 5,
        statement="No file of a project holds a secret.",
        reason="it is committed, and then everybody who has the repository has the secret",
        hint="have a new one made, then refer to a variable; the old one stays in the history", check=each_server(_shared), always=True,
    ),
    AuditRule(
        "secrets.readable", 3,
        statement="A file with secrets is readable for its owner only.",
        reason="other people and services of this machine read it",
        hint="chmod 600 on the file, and have new secrets made where others could read them", check=_readable, always=True,
    ),
)  # fmt: skip
