"""Which rule of `mcpfactory validate` judges which requirement of any server, and why none judges the others.

A requirement is judged when a server that breaks it gets a finding. Where the sentence cannot be seen broken from outside, `WHY`
says why; what could be seen and is not looked at yet stands in `OPEN`, with what it would take.

  python -m tests.runtime.requirements.judged [--json]
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

from tests.runtime.requirements.model import Row
from tests.runtime.requirements.table import ROWS

__all__ = ["OPEN", "RULES_OF", "WHY", "Coverage", "coverage"]

# Rules that judge a requirement, by its id.
RULES_OF: Final[dict[str, str]] = {
    "message.id-types": "legacy.ids",
    "message.response-id": "legacy.ids",
    "message.result-xor-error": "legacy.envelope",
    "message.error-shape": "legacy.envelope",
    "message.error-id": "legacy.ids",
    "message.notification-silence": "legacy.notifications legacy.cancelled",
    "message.notification-no-id": "conduct.shape",
    "message.response-silence": "legacy.responses",
    "message.not-json": "legacy.malformed legacy.survives",
    "message.error-without-id": "legacy.malformed",
    "message.utf-8": "legacy.utf-8 startup.stdout",
    "message.not-rpc": "legacy.not-rpc legacy.survives",
    "message.params-object": "legacy.params",
    "message.unknown-method": "legacy.unknown-method modern.unknown-method",
    "message.internal-error": "behaviour.errors behaviour.argument-errors",
    "message.reserved-codes": "modern.error-codes",
    "message.retired-codes": "modern.error-codes",
    "message.schema": "legacy.envelope behaviour.result content.members content.types conduct.shape lists.members schemas.tool-shape",
    "message.unknown-members": "legacy.unknown-members",
    "meta.unknown-keys": "legacy.unknown-members",
    "meta.required-keys": "modern.metadata",
    "meta.server-info": "modern.named",
    "result-type.every": "modern.result-type",
    "result-type.values": "modern.known-types",
    "initialize.answer": "legacy.introduces startup.speaks",
    "initialize.other-version": "legacy.negotiates legacy.unknown-version",
    "initialize.malformed": "legacy.malformed-initialize",
    "initialize.ping-before": "legacy.early-ping",
    "initialize.quiet": "conduct.early",
    "initialize.respect-version": "content.revision",
    "fallback.no-link": "content.revision",
    "meta.key-grammar": "content.meta-keys",
    "completion.not-offered": "features.no-completion",
    "completion.bad-argument": "features.completion-argument",
    "initialize.not-in-batch": "legacy.batch-initialize",
    "initialize.offer": "lists.declared lists.tools lists.resources lists.prompts conduct.log-declared conduct.changes-declared",
    "initialize.respect-capabilities": "conduct.requests",
    "version.discover": "modern.discover",
    "version.unsupported": "modern.unknown-version",
    "version.per-request": "modern.retired modern.unknown-version",
    "version.retired-methods": "modern.retired",
    "version.no-cross-talk": "modern.retired modern.error-codes",
    "version.extensions-off": "modern.known-types",
    "batch.accept": "legacy.batch",
    "batch.partial": "legacy.batch",
    "batch.one-answer": "legacy.batch",
    "batch.no-answer": "legacy.batch-silence",
    "batch.http-202": "legacy.batch-silence",
    "batch.responses": "legacy.batch-silence",
    "batch.empty": "legacy.batch-empty",
    "stdio.one-line": "startup.stdout",
    "stdio.only-messages": "startup.stdout",
    "stdio.wrong-line": "legacy.malformed legacy.survives",
    "stdio.end-of-input": "startup.ends",
    "stdio.signals": "startup.signals",
    "stdio.no-requests": "conduct.modern-requests",
    "tools.capability": "lists.declared",
    "tools.list": "lists.tools schemas.tool-shape",
    "tools.order": "lists.stable",
    "tools.call": "behaviour.tools-work behaviour.answers",
    "tools.input-schema": "schemas.input-valid schemas.input-object",
    "tools.unknown-tool": "legacy.unknown-tool",
    "tools.malformed-call": "legacy.params",
    "tools.tool-failure": "behaviour.failure-kind robustness.errors",
    "tools.input-error": "behaviour.argument-errors",
    "tools.validate": "behaviour.validates",
    "tools.sanitize": "behaviour.errors security.canary",
    "tools.unique-names": "schemas.names-unique",
    "tools.name-letters": "schemas.names-valid",
    "tools.image": "content.members content.base64",
    "tools.audio": "content.members content.base64",
    "tools.embedded": "content.resources",
    "tools.link": "content.members",
    "tools.annotations": "schemas.tool-shape",
    "tools.title": "schemas.tool-shape",
    "tools.structured": "behaviour.output",
    "tools.structured-object": "content.structured-object",
    "tools.structured-text": "content.structured-text",
    "tools.output-schema": "behaviour.output",
    "tools.output-schema-object": "schemas.output-object",
    "resources.capability": "lists.declared",
    "resources.list": "lists.resources",
    "resources.templates": "lists.templates lists.uris",
    "resources.traversal": "security.files",
    "resources.read-text": "lists.read content.resources",
    "resources.read-blob": "content.base64",
    "resources.mime-type": "content.mime",
    "resources.subscribe": "features.subscribe",
    "resources.unsubscribe": "features.unsubscribe",
    "resources.not-subscribed": "conduct.updates",
    "resources.not-found-legacy": "features.unknown-resource",
    "resources.not-found": "features.unknown-resource",
    "resources.no-empty-contents": "features.unknown-resource",
    "resources.validate-uri": "features.resource-uri",
    "resources.scheme": "lists.uris",
    "resources.metadata": "lists.members",
    "resources.title": "lists.members",
    "resources.icons": "lists.members",
    "prompts.capability": "lists.declared",
    "prompts.list": "lists.prompts lists.members",
    "prompts.get": "features.prompt",
    "prompts.unknown": "features.unknown-prompt",
    "prompts.missing-argument": "features.prompt-arguments",
    "prompts.validate": "features.prompt-arguments",
    "prompts.content": "content.members content.base64",
    "prompts.title": "lists.members",
    "prompts.icons": "lists.members",
    "completion.complete": "features.completion",
    "completion.at-most-100": "features.completion",
    "completion.bad-reference": "features.unknown-completion",
    "completion.validate": "features.unknown-completion",
    "logging.capability": "conduct.log-declared",
    "logging.level": "conduct.log-level",
    "logging.levels": "features.log-level conduct.log-shape",
    "logging.bad-level": "features.unknown-log-level",
    "logging.silent": "conduct.modern-logs",
    "logging.own-stream": "conduct.modern-logs",
    "logging.no-secrets": "security.canary",
    "ping.answer": "legacy.ping",
    "cancel.ignore": "legacy.cancelled",
    "cancel.late": "legacy.cancelled legacy.survives",
    "cancel.only-listen": "conduct.cancelled",
    "progress.asked-for": "conduct.progress-token",
    "progress.token-types": "conduct.progress-token",
    "progress.increases": "conduct.progress-grows",
    "progress.stops": "conduct.progress-token",
    "pages.complete": "schemas.names-unique lists.unique lists.tools",
    "pages.end": "lists.tools",
    "pages.bad-cursor": "legacy.bad-cursor",
    "caching.hints": "modern.cacheable",
    "caching.ttl": "modern.cacheable",
    "caching.scope": "modern.cacheable",
    "caching.pages": "modern.cache-pages",
    "json-schema.default-dialect": "schemas.input-valid",
    "json-schema.other-dialect": "schemas.input-valid",
    "json-schema.unresolved": "schemas.refs-resolve schemas.refs-local",
    "json-schema.no-fetch": "schemas.refs-local",
    "sampling.declared": "conduct.requests modern.input-required",
    "roots.declared": "conduct.requests modern.input-required",
    "elicitation.declared": "conduct.requests modern.input-required",
    "elicitation.mode-declared": "conduct.requests modern.input-required",
    "input-required.instead": "conduct.modern-requests",
    "input-required.methods": "modern.input-required",
    "input-required.shape": "modern.input-required",
    "input-required.declared": "modern.input-required",
    "listen.no-listen-no-news": "conduct.modern-news",
    "listen.acknowledged": "modern.listen modern.listen-wanted",
    "listen.only-wanted": "modern.listen-wanted",
    "listen.tagged": "modern.listen-tagged",
    "listen.several": "modern.listen-several",
    "listen.malformed": "modern.listen-malformed",
    "meta.subscription-id": "modern.listen-tagged",
    "task.declared": "modern.known-types",
    "meta.required-keys-status": "http.modern-status",
    "version.unsupported-status": "http.modern-status",
    "origin.validated": "http.origin",
    "origin.status": "http.origin",
    "http.accepted": "http.accepted",
    "http.not-accepted": "http.arrays http.version-header",
    "http.single": "http.arrays",
    "http.request": "http.content-type",
    "http.one-endpoint": "http.get",
    "http-get.stream": "http.get",
    "session.begun": "http.session-id",
    "session.ascii": "http.session-id",
    "session.missing": "http.no-session",
    "session.ended": "http.unknown-session http.deleted-session",
    "session.delete": "http.deleted-session",
    "version-header.unsupported": "http.version-header",
    "batch.refused": "http.arrays",
    "http-modern.get-delete": "http.modern-get",
    "http-modern.no-sessions": "http.modern-session",
    "http-modern.version-missing": "http.modern-version",
    "http-modern.version-mismatch": "http.modern-version",
    "http-modern.version-unsupported": "http.modern-status",
    "http-modern.unknown-method": "http.modern-status",
    "http-modern.mcp-method": "http.modern-method",
    "http-modern.mcp-name": "http.modern-name",
    "http-modern.no-requests": "conduct.modern-requests",
    "http.stream-has-response": "legacy.ping lists.tools",
    "origin.host": "http.host",
    "http.stream-ends": "http.stream-ends",
    "polling.primed": "http.polling",
    "polling.not-before": "http.polling",
    "version-header.missing": "http.version-missing",
    "http-modern.single": "http.modern-single",
    "http-modern.notification": "http.modern-accepted",
    "http-modern.stream-ends": "http.stream-ends",
    "http-modern.no-buffering": "http.modern-buffering",
    "http-modern.no-resume": "http.modern-resume",
    "http-modern.error-id": "http.modern-error-id",
    "http-modern.markers": "http.modern-encoding",
    "http-modern.encoded-name": "http.modern-encoding",
    "http-modern.header-case": "http.modern-headers http.modern-case",
    "http-modern.header-space": "http.modern-blanks",
}

_CLIENT = "the sentence binds who sends the message; an honest server may serve it, too"
_INSIDE = "only the server's inside shows it"
_SLOW = "it takes a request that is still running, and no tool of a foreign server is known to be slow"
_MADE = "it takes a tool that does this; a foreign server need not have one"
_CHANGE = "it takes a server whose lists or resources change while it is looked at"
_AUTH = "it takes an authorization server and tokens of it"
_PEERS = "it takes two clients with different rights"
_LOAD = "it takes a flood of requests, which nobody sends to a server that is not theirs"
_MAY = "the specification allows further members; who knows the revision drops them"
_HTML = "it is seen by those who run the server, not by a client"
_ALLOWED = "servers of one lifecycle are allowed; the sentence is about our runtime's two"

# Why a requirement cannot be seen broken from outside, by patterns of ids.
WHY: Final[dict[str, str]] = {
    "message.id-null": _CLIENT,
    "message.id-other": _CLIENT,
    "message.id-in-flight": _SLOW,
    "message.own-codes": _INSIDE,
    "meta.undeclared-capability*": _MADE,
    "meta.no-memory": _MADE,
    "meta.trace-context": _INSIDE,
    "result-type.absent-before": _MAY,
    "caching.absent-before": _MAY,
    "caching.not-input-required": _MADE,
    "fallback.fields": _MAY,
    "fallback.no-structured": _MAY,
    "initialize.same-version": "who answers with another version says that it does not speak the one asked for",
    "initialize.latest-version": "what a server speaks is known by its answers only",
    "initialize.first": _CLIENT,
    "initialize.request-timeouts": _MADE,
    "version.discover-all": "what a server would serve is known by its answers only",
    "version.handshake-*": _ALLOWED,
    "version.modern-after-handshake": _ALLOWED,
    "version.same-endpoint": _ALLOWED,
    "version.lists-alike": _PEERS,
    "stdio.interleave": _SLOW,
    "stdio.drain": _SLOW,
    "stdio.cancelled-silence": _SLOW,
    "origin.first": _INSIDE,
    "origin.loopback": _HTML,
    "origin.authentication": _AUTH,
    "http.disconnect": _SLOW,
    "http.stream-related": _MADE,
    "http.no-early-end": _SLOW,
    "http-get.unrelated": _CHANGE,
    "http-get.no-responses": _SLOW,
    "http-get.one-stream": _CHANGE,
    "resume.*": _SLOW,
    "polling.early-end": _SLOW,
    "polling.retry": _SLOW,
    "version-header.mismatch": "the sentence binds clients; a server is bound to refuse versions that it does not speak, and may serve all others",
    "session.unguessable": "some ids of a session do not show how they are made",
    "session.foreign": _PEERS,
    "http-modern.related": _MADE,
    "http-modern.disconnect": _SLOW,
    "param-header.*": "it takes a tool with x-mcp-header",
    "http-sse.*": "the transport of the first revision is not examined: no server of today has it alone",
    "tools.list-changed": _CHANGE,
    "tools.access-control": _PEERS,
    "tools.rate-limit": _LOAD,
    "tools.icons": "icons are optional, and no client refuses a tool for one",
    "tools.structured-any": "a permission",
    "resources.template-read": "what a template stands for is the server's to say",
    "resources.list-changed": _CHANGE,
    "resources.internal-error": _MADE,
    "resources.access": _INSIDE,
    "prompts.list-changed": _CHANGE,
    "prompts.internal-error": _MADE,
    "completion.capability": "a server that completes without saying so does no harm",
    "completion.no-capability": _MAY,
    "completion.context": _INSIDE,
    "completion.relevance": _INSIDE,
    "completion.rate-limit": _LOAD,
    "listen.resources": _CHANGE,
    "listen.graceful-end": "the specification has two endings, a result and a cancellation, and a client sees neither of a server that it ends itself",
    "logging.rate-limit": _LOAD,
    "cancel.stop": _SLOW,
    "cancel.silence": _SLOW,
    "cancel.not-initialize": "initialize is answered before a cancellation of it can arrive",
    "cancel.own-requests": _SLOW,
    "progress.message": "a permission",
    "progress.rate-limit": _LOAD,
    "pages.four-lists": "how much is much is the server's to say",
    "pages.stable": _CHANGE,
    "json-schema.unchanged": "what the author gave is not known",
    "json-schema.bounds": _LOAD,
    "sampling.*": _MADE,
    "roots.*": _MADE,
    "elicitation.*": _MADE,
    "input-required.*": _MADE,
    "auth.*": _AUTH,
    "task-core.*": "it takes a server that declares tasks, and a tool that becomes one",
    "task.*": "it takes a server that declares the extension, and a tool that becomes a task",
    "skill.*": "it takes a server that declares the extension",
}

# What could be seen, and is not looked at yet.
OPEN: Final[dict[str, str]] = {}


# Areas whose sentences bind clients as well, in the other direction; all others bind the server alone.
_BOTH: Final = ("message", "meta", "cancel", "progress")


class Coverage(NamedTuple):
    """One requirement: who it binds, the rules that judge it, or why none does. `open` says that one could."""

    row: Row
    rules: tuple[str, ...]
    why: str
    open: bool

    @property
    def subject(self) -> str:
        """Who the sentence binds."""
        return "both" if self.row.id.partition(".")[0] in _BOTH else "server"

    def to_json(self) -> dict[str, Any]:
        """Return the line of `--json`."""
        row = self.row
        return {
            "id": row.id,
            "level": row.level,
            "since": row.since.name,
            "until": row.until.name,
            "subject": self.subject,
            "observable": bool(self.rules) or self.open,
            "rules": list(self.rules),
            "why": self.why,
        }


def coverage() -> list[Coverage]:
    """Every requirement with its rules, or the reason; without either for one that nobody has looked at."""
    return [_covered(row) for row in ROWS]


def _covered(row: Row) -> Coverage:
    rules = tuple(RULES_OF.get(row.id, "").split())
    never = "" if rules else _first(WHY, row.id)
    still = "" if rules or never else _first(OPEN, row.id)
    why = never or still
    return Coverage(row, rules, why, bool(still))


def _first(table: dict[str, str], name: str) -> str:
    return next((text for pattern, text in table.items() if fnmatchcase(name, pattern)), "")


def to_text(rows: list[Coverage]) -> str:
    """Return the counts, what is open, and what cannot be seen with the reasons, most frequent first."""
    lines = [f"{'':8}{'rows':>6}{'judged':>8}{'open':>6}{'not observable':>16}"]
    for level in ("MUST", "SHOULD", "all"):
        chosen = [one for one in rows if level in (one.row.level, "all")]
        judged, still = sum(bool(one.rules) for one in chosen), sum(one.open for one in chosen)
        lines.append(f"{level:8}{len(chosen):6}{judged:8}{still:6}{len(chosen) - judged - still:16}")
    lines += ["", "open: it could be seen, and is not looked at yet"]
    lines += [f"  {one.row.level:7}{one.row.id}: {one.why}" for one in rows if one.open]
    lines += ["", "cannot be seen of a server as it comes"]
    reasons = Counter(one.why for one in rows if one.why and not one.open)
    for why, count in reasons.most_common():
        names = [one.row.id for one in rows if one.why == why and not one.open]
        lines.append(f"  {count:3}  {why}: {', '.join(names[:6])}{', …' if count > 6 else ''}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    found = coverage()
    words = json.dumps([one.to_json() for one in found], indent=1) + "\n" if "--json" in sys.argv else to_text(found)
    sys.stdout.write(words)
