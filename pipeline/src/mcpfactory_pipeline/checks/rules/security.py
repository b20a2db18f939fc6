"""Rules about security: hidden text, leaked secrets, drift of adopted servers, and canaries."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mcpfactory_pipeline.base.text import HIDDEN, iterate_json_strings
from mcpfactory_pipeline.build.secret_scan import secret_kind
from mcpfactory_pipeline.checks.canaries import CanaryKind, CanaryResult
from mcpfactory_pipeline.checks.evidence import Evidence, answer_text
from mcpfactory_pipeline.checks.exchange import WireExchange
from mcpfactory_pipeline.checks.rule import (
    Fault,
    RuleOutcome,
    RuleSubjects,
    RuleTable,
    Severity,
    not_applicable,
    not_checked,
    rule_outcome,
)
from mcpfactory_pipeline.checks.rules.subjects import missing_lifecycle_outcome

RULES: Final = RuleTable()
rule, row = RULES.rule, RULES.row
_READ_FIRST: Final = 20_000  # maximum characters to check per text of a prompt or resource
# Method → parameter that names the prompt or resource, and member of the result that models read.
_SHOWN: Final = {"prompts/get": ("name", "messages"), "resources/read": ("uri", "contents")}


def _texts(evidence: Evidence) -> RuleSubjects[tuple[str, str]] | RuleOutcome:
    if (reason := missing_lifecycle_outcome(evidence)) is not None:
        return reason
    found: list[tuple[str, str]] = []
    for exchange in [*evidence.handshakes.values(), *([evidence.discover] if evidence.discover else [])]:
        instructions = (exchange.result or {}).get("instructions")
        if isinstance(instructions, str):
            found.append(("instructions", instructions))
            break
    for method, listing in evidence.lists.items():
        for index, item in enumerate(listing.items):
            name = item.get("name") if isinstance(item, dict) else None
            found += [(str(name or f"{method}/{index}"), text) for text in iterate_json_strings(item)]
    texts = list(dict.fromkeys([*found, *_contents(evidence)]))
    return RuleSubjects(texts, len({where for where, _ in texts}))


def _contents(evidence: Evidence) -> Iterator[tuple[str, str]]:
    first = (evidence.probes.get("get-prompt"), evidence.probes.get("read-resource"))
    for exchange in filter(None, [*first, *evidence.later_reads]):
        key, member = _SHOWN[exchange.method]
        where = str(exchange.params.get(key))
        yield from ((where, text[:_READ_FIRST]) for text in iterate_json_strings((exchange.result or {}).get(member)))


# Zero width space, word joiner and byte order mark: editors insert them to control line breaks.
_LINE_BREAKING: Final = frozenset("\u200b\u2060\ufeff")
_A_BYTE: Final = 8  # at about one bit per character, fewer characters cannot encode a message


@rule("security.hidden-text", 5, gate=True, over=_texts,
      statement="No text for the model contains characters that people cannot see.",
      source="tool poisoning: text that the reviewer cannot see and the model obeys",
      hint="remove the characters, and check the source of the text")  # fmt: skip
def _hidden(shown: tuple[str, str]) -> Iterator[Fault]:
    where, text = shown
    hidden = "".join(HIDDEN.findall(text))
    found = sorted(set(hidden))
    if found:
        names = ", ".join(f"U+{ord(char):04X} {unicodedata.name(char, 'unnamed')}" for char in found[:5])
        harmless = len(hidden) < _A_BYTE and set(found) <= _LINE_BREAKING
        proof = {"text": text.encode("unicode_escape").decode()}
        yield Fault(f"hidden characters: {names}", where, proof=proof, lesser=2 if harmless else None)


@rule("security.secret-exposure", 5, gate=True,
      statement="A secret placed in the environment appears in no answer, error or log.",
      source="MCP basic/security best practices; secrets reach upstream and nothing else",
      hint="log the names of settings, not their values; keep request headers out of error texts")  # fmt: skip
def _canary(evidence: Evidence) -> RuleOutcome:
    if not evidence.secrets:
        return not_applicable("no secret could be placed in the environment of a server that was not started here")
    return rule_outcome(1, _leaks(evidence)) if evidence.sessions else not_checked("nothing was observed")


def _leaks(evidence: Evidence) -> Iterator[Fault]:
    for exchange in evidence.traffic:
        named = _named(evidence, json.dumps(exchange.received, ensure_ascii=False))
        if named:
            method = exchange.method or "a message"
            yield Fault(f"an answer to {method} contains the value of {named}", method, exchange)
            break
    for session in evidence.sessions:
        for line in (*session.stderr.splitlines(), *session.pollution, *session.notifications):
            named = _named(evidence, line)
            if named:
                yield Fault(f"the log of the process contains the value of {named}", "output", proof={"line": line})
                return


def _named(evidence: Evidence, text: str) -> str:
    return next((name for name, value in evidence.secrets.items() if value in text), "")


# A URL with a user name and a password; placeholders such as <password>, *** and {password} do not match.
_URL_WITH_PASSWORD: Final = re.compile(
    r"\b[a-z][a-z0-9+.-]*://[^\s/:@<>{}*\"']+:[^\s/@<>{}*\"']{3,}@[a-z0-9]", re.IGNORECASE
)


def _errors_and_texts(evidence: Evidence) -> RuleSubjects[tuple[str, str, WireExchange | None]] | RuleOutcome:
    texts = _texts(evidence)
    if isinstance(texts, RuleOutcome):
        return texts
    failed = [call for call in evidence.tool_calls if call.failed and call.exchange.received is not None]
    found = [(call.tool, answer_text(call.exchange), call.exchange) for call in failed]
    logged = [one for one in evidence.server_messages if one.method == "notifications/message"]
    found += [
        (one.method, json.dumps(one.params, ensure_ascii=False), WireExchange(one.during or {}, one.message))
        for one in logged
    ]
    return RuleSubjects([*found, *((where, text, None) for where, text in texts.items)], once=True)


@rule("security.credentials-in-texts", 3, gate=True, over=_errors_and_texts,
      statement=("No error, no log message and no text for the model contains a URL with a user name and a password, a "
                 "private key, or a token of a known service."),
      source=("MCP basic/security best practices; server/utilities/logging, Security: log messages must not contain "
              "credentials"),
      hint="read credentials from the environment, and write error texts without the values of the exception")  # fmt: skip
def _credentials(subject: tuple[str, str, WireExchange | None]) -> Iterator[Fault]:
    where, text, exchange = subject
    found = _URL_WITH_PASSWORD.search(text)
    kind = "a URL with a password" if found else secret_kind(text.encode(errors="replace"))
    if kind and not (found and exchange is not None and found[0] in str(exchange.sent)):
        # A description may show the form of a connection string.
        yield Fault(f"the text contains {kind}", where, exchange, lesser=2 if found and exchange is None else None)


@rule("security.drift", 5, gate=True,
      statement=("The adopted server is unchanged: the URL offers the same tools, resources, prompts and instructions, "
                 "and the pinned file of the package was not replaced."),
      source="tool poisoning: people approve a tool, and the model gets another one later (the rug pull)",
      hint="review the changes, then adopt the current server or another version")  # fmt: skip
def _drift(evidence: Evidence) -> RuleOutcome:
    if evidence.drift is None:
        return not_applicable(
            "only servers adopted from a URL, an index or a registry are compared with the adopted version"
        )
    return RuleOutcome(tuple(map(Fault, evidence.drift)))


@dataclass(frozen=True, slots=True)
class CanarySubjects:
    """Scope of one kind of canary.

    The subjects are the first successful canary of each argument. The count includes all tried arguments.

    `what` describes the values of the argument. `how` describes the evidence that a canary was successful.
    """

    kind: CanaryKind
    what: str
    how: str

    def __call__(self, evidence: Evidence) -> RuleSubjects[CanaryResult] | RuleOutcome:
        """Return the canaries, or the outcome of the rule if there are no canaries."""
        if evidence.transport == "http" and not evidence.canaries:
            return not_applicable("only servers on this machine are tested, because the canaries are on it")
        tried = [one for one in evidence.canaries if one.probe.kind == self.kind]
        if not tried and "canaries" in evidence.missing:
            return not_checked(evidence.missing["canaries"])
        if not tried:
            return not_applicable(f"no callable tool and no template takes {self.what}")
        caught = {one.probe.place: one for one in reversed(tried) if one.taken and not one.probe.confirms}
        if self.kind == "file":  # a server may refuse files outside of the first file's folder
            sure = {one.probe.place for one in tried if one.taken and one.probe.confirms}
            caught = {place: one for place, one in caught.items() if place in sure}
        return RuleSubjects(list(caught.values()), len({one.probe.place for one in tried}))

    def faults(self, canary: CanaryResult) -> Iterator[Fault]:
        """Yield the fault for a canary; the severity is lower if the server states that the value names a file."""
        probe = canary.probe
        lesser: Severity | None = 3 if probe.stated else None
        yield Fault(f"{probe.argument!r} is vulnerable: {self.how}", probe.target, canary.exchange, lesser=lesser)


_FILE_READ: Final = "the answer contains a file of this machine that is outside every folder of the server"

row("security.path-traversal", 3, gate=True, over=CanarySubjects("file", "a path", _FILE_READ),
    statement=("No value of an argument or of a resource template gives access to files outside the scope of the server. "
               "A finding closes no gate if the server states that the value names a file."),
    source=("MCP server/resources, Security Considerations: servers must validate all resource URIs; server/tools: "
            "servers must validate all tool inputs"),
    hint=("join the value below one folder, resolve it, and refuse a result outside the folder "
          "(mcpfactory_runtime.safe_join)"))  # fmt: skip

row("security.command-injection", 5, gate=True,
    over=CanarySubjects("command", "free text", "the answer contains the output of a shell command in the value"),
    statement="No value of an argument is run as a command.",
    source="MCP server/tools, Security Considerations: servers must validate all tool inputs",
    hint="start programs with a list of arguments and no shell")  # fmt: skip

row("security.template-injection", 5, gate=True,
    over=CanarySubjects("template", "free text", "the answer contains the product of an expression in the value, or an "
                        "internal attribute of the server's objects"),
    statement="No value of an argument is evaluated as a template, except by tools that state this purpose.",
    source="MCP server/tools, Security Considerations: servers must validate all tool inputs",
    hint="pass values to templates as data; replace known placeholders by their names, without str.format on objects")  # fmt: skip

row("security.option-injection", 3, gate=True,
    over=CanarySubjects("option", "free text", "a program complains about the value as an unknown option"),
    statement="No value of an argument that begins with dashes reaches a program as an option.",
    source="MCP server/tools, Security Considerations: servers must validate all tool inputs",
    hint="put -- before the value, or refuse values that begin with a dash: options may write files")  # fmt: skip

row("security.sql-injection", 5, gate=True,
    over=CanarySubjects("query", "free text", "the answer depends on a condition that the value adds to an SQL query"),
    statement="No value of an argument is run as a part of an SQL query.",
    source="MCP server/tools, Security Considerations: servers must validate all tool inputs",
    hint="pass values as parameters of the query: execute('… WHERE name = ?', (name,))")  # fmt: skip

row("security.ssrf", 2,
    over=CanarySubjects("address", "an address", "the server sent a request to the local address in the value"),
    statement="No value of an argument makes the server send requests to its own machine.",
    source="MCP basic/security best practices, Server-Side Request Forgery",
    hint="refuse loopback, private and link-local addresses after you resolve the name, unless a setting permits them")  # fmt: skip

row("security.address-filter", 3, gate=True,
    over=CanarySubjects("address form", "an address", "the server refuses 127.0.0.1, but not another form of this address"),
    statement="A tool that refuses local addresses refuses all forms of these addresses.",
    source="MCP basic/security best practices, Server-Side Request Forgery",
    hint="resolve the name, and compare the IP address, not its text")  # fmt: skip
