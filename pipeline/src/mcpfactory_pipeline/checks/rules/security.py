"""Rules over what a server might do to its readers: hidden text, leaked secrets, bait that is taken."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterator
from typing import Final

from mcpfactory_pipeline.base.text import HIDDEN, strings_in
from mcpfactory_pipeline.checks.evidence import Evidence
from mcpfactory_pipeline.checks.rule import Fault, Rule, RuleOutcome, not_applicable, not_checked, rule_outcome
from mcpfactory_pipeline.checks.rules.legacy import era_or_reason

_READ_FIRST: Final = 20_000  # characters of each text of a prompt or resource that are looked at
# The member that names the subject, and the result member shown to a model.
_SHOWN: Final = {"prompts/get": ("name", "messages"), "resources/read": ("uri", "contents")}


def _texts(evidence: Evidence) -> list[tuple[str, str]]:
    """(where, text) of everything that a model is shown of this server by its lists.

    Beside them the messages of the prompts and the contents of the resources that were asked for.
    """
    found: list[tuple[str, str]] = []
    for exchange in [*evidence.handshakes.values(), *([evidence.discover] if evidence.discover else [])]:
        instructions = (exchange.result or {}).get("instructions")
        if isinstance(instructions, str):
            found.append(("instructions", instructions))
            break
    for method, listing in evidence.lists.items():
        for index, item in enumerate(listing.items):
            name = item.get("name") if isinstance(item, dict) else None
            found += [(str(name or f"{method}/{index}"), text) for text in strings_in(item)]
    return list(dict.fromkeys([*found, *_contents(evidence)]))


def _contents(evidence: Evidence) -> Iterator[tuple[str, str]]:
    first = (evidence.probes.get("get-prompt"), evidence.probes.get("read-resource"))
    for exchange in filter(None, [*first, *evidence.further]):
        if exchange.result is None or not isinstance(exchange.sent, dict):
            continue
        key, member = _SHOWN[exchange.sent["method"]]
        where = str(exchange.sent.get("params", {}).get(key))
        yield from ((where, text[:_READ_FIRST]) for text in strings_in(exchange.result.get(member)))


def _hidden(evidence: Evidence) -> RuleOutcome:
    texts = _texts(evidence)
    return era_or_reason(evidence) or rule_outcome(
        len({where for where, _ in texts}), (fault for where, text in texts for fault in _hidden_in(where, text))
    )


def _hidden_in(where: str, text: str) -> Iterator[Fault]:
    found = sorted(set("".join(HIDDEN.findall(text))))
    if found:
        names = ", ".join(f"U+{ord(char):04X} {unicodedata.name(char, 'unnamed')}" for char in found[:5])
        yield Fault(f"hidden characters: {names}", where, proof={"text": text.encode("unicode_escape").decode()})


def _canary(evidence: Evidence) -> RuleOutcome:
    if not evidence.secrets:
        return not_applicable("no secret could be placed in the environment of a server that was not started here")
    if not evidence.traffic and not evidence.starts:
        return not_checked("nothing was observed")
    return RuleOutcome(tuple(_leaks(evidence)))


def _leaks(evidence: Evidence) -> Iterator[Fault]:
    for exchange in evidence.traffic:
        named = _named(evidence, json.dumps(exchange.received, ensure_ascii=False))
        if named:
            method = exchange.sent.get("method") if isinstance(exchange.sent, dict) else "a message"
            yield Fault(f"an answer to {method} contains the value of {named}", str(method), exchange)
            break
    for start in evidence.starts:
        for line in (*start.stderr.splitlines(), *start.noise, *start.notifications):
            named = _named(evidence, line)
            if named:
                yield Fault(f"the log of the process contains the value of {named}", "output", proof={"line": line})
                return


def _named(evidence: Evidence, text: str) -> str:
    return next((name for name, value in evidence.secrets.items() if value in text), "")


def _drifted(evidence: Evidence) -> RuleOutcome:
    if evidence.drift is None:
        return not_applicable(
            "only what was adopted from a URL, an index or a registry is held against what was adopted"
        )
    return RuleOutcome(tuple(map(Fault, evidence.drift)))


_TAKEN: Final = {
    "file": "the answer holds a file of this machine that is outside of every folder of the server",
    "command": "the answer holds what a shell makes of a part of the value",
    "address": "the server asked the address of this machine that the value names",
}


def _not_taken(kind: str, what: str) -> Callable[[Evidence], RuleOutcome]:
    def check(evidence: Evidence) -> RuleOutcome:
        if evidence.transport == "http":
            return not_applicable("only a server that is started here is tried: the bait lies on this machine")
        tried = [one for one in evidence.temptations if one.kind == kind]
        if not tried:
            return not_applicable(f"there is no tool that may be called, and no template, that takes {what}")
        caught = {(one.where, one.argument): one for one in reversed(tried) if one.taken and not one.confirms}
        if kind == "file":  # one that is there for the folder of the first file does not read the other
            sure = {(one.where, one.argument) for one in tried if one.taken and one.confirms}
            caught = {place: one for place, one in caught.items() if place in sure}
        faults = (
            Fault(f"{argument!r} is vulnerable: {_TAKEN[kind]}", where, one.exchange)
            for (where, argument), one in caught.items()
        )
        return rule_outcome(len({(one.where, one.argument) for one in tried}), faults)

    return check


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="security.hidden-text", severity=5, gate=True, check=_hidden,
        statement="No text for the model contains characters that people cannot see.",
        source="tool poisoning: text that the reviewer cannot see and the model obeys",
        hint="remove the characters, and check the source of the text",
    ),
    Rule(
        id="security.canary", severity=5, gate=True, check=_canary,
        statement="A secret placed in the environment appears in no answer, error or log.",
        source="MCP basic/security best practices; secrets reach upstream and nothing else",
        hint="log the names of settings, not their values; keep request headers out of error texts",
    ),
    Rule(
        id="security.drift", severity=5, gate=True, check=_drifted,
        statement=("The adopted server is unchanged: its URL has the same offer, and the pinned file of its package was "
                   "not replaced."),
        source="tool poisoning: people approve a tool, and the model gets another one later (the rug pull)",
        hint="review the changes, then adopt the current server or another version",
    ),
    Rule(
        id="security.files", severity=3, check=_not_taken("file", "a path"),
        statement=("No value of an argument or of a resource template gives access to files outside the scope of the "
                   "server."),
        source=("MCP server/resources, Security Considerations: servers must validate all resource URIs; "
                "server/tools: servers must validate all tool inputs"),
        hint=("join the value below one folder, resolve it, and refuse a result outside the folder "
              "(mcpfactory_runtime.safe_join)"),
    ),
    Rule(
        id="security.commands", severity=5, gate=True, check=_not_taken("command", "free text"),
        statement="No value of an argument is run as a command.",
        source="MCP server/tools, Security Considerations: servers must validate all tool inputs",
        hint="start programs with a list of arguments and no shell",
    ),
    Rule(
        id="security.addresses", severity=2, check=_not_taken("address", "an address"),
        statement="No value of an argument makes the server send requests to its own machine.",
        source="MCP basic/security best practices, Server-Side Request Forgery",
        hint=("refuse loopback, private and link-local addresses after you resolve the name, unless a setting "
              "permits them"),
    ),
)  # fmt: skip
